#include "compute/convolution_axes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

namespace holdfast::compute {

static ConvolutionAxis convolution_axis(std::int64_t extent, std::int64_t kernel, std::int64_t stride,
                                        std::int64_t dilation, Padding padding) {
  // A dilated kernel covers more elements than it has, so the window is as long as what it covers.
  return {.extent = extent,
          .kernel = kernel,
          .stride = stride,
          .dilation = dilation,
          .window = slide(extent, dilated_size(kernel, dilation), stride, padding)};
}

ConvolutionAxes::ConvolutionAxes(const ConvolutionShape& shape)
    : axes_{
          convolution_axis(shape.depth, shape.kernel_depth, shape.stride_depth, shape.dilation_depth, shape.padding),
          convolution_axis(shape.height, shape.kernel_height, shape.stride_height, shape.dilation_height,
                           shape.padding),
          convolution_axis(shape.width, shape.kernel_width, shape.stride_width, shape.dilation_width, shape.padding)} {}

// Only such shapes can be written as a product with a column matrix (columns_convolution.cpp).
bool is_plain(const ConvolutionShape& shape) {
  return shape.groups == 1 && shape.dilation_height == 1 && shape.dilation_width == 1 &&
         !ConvolutionAxes(shape).is_volume();
}

std::string describe_convolution(const std::string& pass, const ConvolutionShape& shape) {
  const ConvolutionAxes axes(shape);
  std::vector<std::int64_t> input = {shape.samples}, kernel, strides, dilations;
  for (const ConvolutionAxis& axis : axes.needed()) {
    input.push_back(axis.extent);
    kernel.push_back(axis.kernel);
    strides.push_back(axis.stride);
    dilations.push_back(axis.dilation);
  }
  input.push_back(shape.channels);
  // A filter sees the channels of its own group only.
  kernel.insert(kernel.end(), {shape.channels / shape.groups, shape.filters});
  std::string text = fmt::format("{} of convolution {} x {}, strides {}, padding {}", pass, input, kernel, strides,
                                 name(shape.padding));
  if (is_plain(shape)) return text;
  return fmt::format("{}, dilation {}, groups {}", text, dilations, shape.groups);
}

}  // namespace holdfast::compute
