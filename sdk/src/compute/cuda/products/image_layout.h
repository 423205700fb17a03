#pragma once

// Array layouts as cuDNN describes them. Axes are named in the order sample, channel, row, column, whatever their order
// in memory. Filters count as samples.

#include <array>
#include <cstdint>

#include "compute/backend.h"
#include "compute/cuda/runtime/array_alignment.h"
#include "compute/window.h"

namespace holdfast::compute {

struct ImageLayout {
  std::array<std::int64_t, 4> extents;
  std::array<std::int64_t, 4> strides;
  std::int64_t alignment;  // in bytes, of the array and, for images, of each sample in it
};

inline std::int64_t elements_of(const ImageLayout& layout) {
  return layout.extents[0] * layout.extents[1] * layout.extents[2] * layout.extents[3];
}

// The layout of an array [sample, row, column, channel] without gaps.
inline ImageLayout layout_of_images(std::int64_t samples, std::int64_t rows, std::int64_t columns,
                                    std::int64_t channels) {
  return {.extents = {samples, channels, rows, columns},
          .strides = {rows * columns * channels, 1, columns * channels, channels},
          .alignment = static_cast<std::int64_t>(alignment_of_rows(rows * columns * channels))};
}

inline ImageLayout layout_of_input(const ConvolutionShape& shape) {
  return layout_of_images(shape.samples, shape.height, shape.width, shape.channels);
}

// The layout of the kernel's copy in the workspace, [filter, row, column, channel] without gaps. Engines for images
// with the channels last support no other layout. They accept other strides, but ignore them (seen with cuDNN 9.19).
inline ImageLayout layout_of_kernel_copy(const ConvolutionShape& shape) {
  ImageLayout layout = layout_of_images(shape.filters, shape.kernel_height, shape.kernel_width, shape.channels);
  layout.alignment = kWidestAccess;
  return layout;
}

inline ImageLayout layout_of_output(const ConvolutionShape& shape) {
  const Window rows = slide(shape.height, shape.kernel_height, shape.stride_height, shape.padding);
  const Window columns = slide(shape.width, shape.kernel_width, shape.stride_width, shape.padding);
  return layout_of_images(shape.samples, rows.count, columns.count, shape.filters);
}

}  // namespace holdfast::compute
