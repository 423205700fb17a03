#pragma once

// Array layouts as cuDNN describes them. Axes are named in the order sample, channel, depth, row, column, whatever
// their order in memory; images have no depth. Filters count as samples.

#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "compute/backend.h"
#include "compute/convolution_axes.h"
#include "compute/cuda/runtime/array_alignment.h"

namespace holdfast::compute {

struct ImageLayout {
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> strides;
  std::int64_t alignment;  // in bytes, of the array and, for images, of each sample in it
};

inline std::int64_t elements_of(const ImageLayout& layout) {
  return std::accumulate(layout.extents.begin(), layout.extents.end(), std::int64_t{1}, std::multiplies<>());
}

// The layout of an array [sample, spatial axes..., channel] without gaps. `extent` gives that of an axis.
inline ImageLayout layout_of_images(std::int64_t samples, const ConvolutionAxes& axes, std::int64_t channels,
                                    const std::function<std::int64_t(const ConvolutionAxis&)>& extent) {
  ImageLayout layout = {.extents = {samples, channels}, .strides = {0, 1}, .alignment = 0};
  for (const ConvolutionAxis& axis : axes.needed()) layout.extents.push_back(extent(axis));
  layout.strides.resize(layout.extents.size());
  std::int64_t stride = channels;
  for (std::size_t axis = layout.extents.size() - 1; axis >= 2; --axis) {
    layout.strides[axis] = stride;
    stride *= layout.extents[axis];
  }
  layout.strides[0] = stride;
  layout.alignment = static_cast<std::int64_t>(alignment_of_rows(stride));
  return layout;
}

inline ImageLayout layout_of_input(const ConvolutionShape& shape) {
  return layout_of_images(shape.samples, ConvolutionAxes(shape), shape.channels,
                          [](const ConvolutionAxis& axis) { return axis.extent; });
}

// The layout of the kernel's copy in the workspace, [filter, spatial axes..., channel of the group] without gaps.
// Engines for images with the channels last support no other layout. They accept other strides, but ignore them (seen
// with cuDNN 9.19). The library takes the number of groups from the channels of images and kernel.
inline ImageLayout layout_of_kernel_copy(const ConvolutionShape& shape) {
  ImageLayout layout = layout_of_images(shape.filters, ConvolutionAxes(shape), shape.channels / shape.groups,
                                        [](const ConvolutionAxis& axis) { return axis.kernel; });
  layout.alignment = kWidestAccess;
  return layout;
}

inline ImageLayout layout_of_output(const ConvolutionShape& shape) {
  return layout_of_images(shape.samples, ConvolutionAxes(shape), shape.filters,
                          [](const ConvolutionAxis& axis) { return axis.window.count; });
}

}  // namespace holdfast::compute
