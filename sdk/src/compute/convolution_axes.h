#pragma once

// The spatial axes of a convolution, with the windows that slide along each. Back ends compute shapes with them.

#include <array>
#include <span>
#include <string>

#include "compute/backend.h"
#include "compute/window.h"

namespace holdfast::compute {

struct ConvolutionAxis {
  std::int64_t extent = 1;  // of the input
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  Window window{};
};

// Depth, height and width.
class ConvolutionAxes {
 public:
  explicit ConvolutionAxes(const ConvolutionShape& shape);

  const ConvolutionAxis& depth() const { return axes_[0]; }
  const ConvolutionAxis& height() const { return axes_[1]; }
  const ConvolutionAxis& width() const { return axes_[2]; }

  // Height and width; for volumes depth too, which comes first.
  std::span<const ConvolutionAxis> needed() const { return std::span(axes_).subspan(is_volume() ? 0 : 1); }
  bool is_volume() const { return depth().extent > 1 || depth().kernel > 1; }

 private:
  std::array<ConvolutionAxis, 3> axes_;
};

// Whether it is a convolution of images without groups and dilation.
bool is_plain(const ConvolutionShape& shape);

// For errors: "PASS of convolution [..] x [..], strides [..], padding same".
std::string describe_convolution(const std::string& pass, const ConvolutionShape& shape);

}  // namespace holdfast::compute
