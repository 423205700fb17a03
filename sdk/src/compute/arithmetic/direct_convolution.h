#pragma once

// Convolution of any shape, one element at a time, for host and device: with groups, dilation and up to three spatial
// axes. It serves the shapes that no library takes. Arrays are those of ConvolutionOperation. Sums are f32 and have one
// order, that of the loops below, whatever thread computes an element. docs/decisions/convolution.md

#include <cstdint>

#include "compute/convolution_axes.h"
#include "core/host_device.h"

namespace holdfast::compute {

// The numbers of a ConvolutionAxis, for kernels.
struct DirectAxis {
  explicit DirectAxis(const ConvolutionAxis& axis)
      : extent(axis.extent),
        kernel(axis.kernel),
        stride(axis.stride),
        dilation(axis.dilation),
        pad_before(axis.window.pad_before),
        count(axis.window.count) {}

  // Where element `of_kernel` of window `window` lies on the input, or -1 for padding.
  HOLDFAST_HOST_DEVICE std::int64_t input_of(std::int64_t window, std::int64_t of_kernel) const {
    const std::int64_t at = window * stride + of_kernel * dilation - pad_before;
    return at >= 0 && at < extent ? at : -1;
  }
  // The window whose element `of_kernel` lies on an element of the input, or -1 without one.
  HOLDFAST_HOST_DEVICE std::int64_t window_over(std::int64_t input, std::int64_t of_kernel) const {
    const std::int64_t begin = input + pad_before - of_kernel * dilation;
    if (begin < 0 || begin % stride != 0) return -1;
    const std::int64_t window = begin / stride;
    return window < count ? window : -1;
  }

  std::int64_t extent;
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t dilation;
  std::int64_t pad_before;
  std::int64_t count;
};

struct DirectConvolution {
  explicit DirectConvolution(const ConvolutionShape& shape) : DirectConvolution(shape, ConvolutionAxes(shape)) {}
  DirectConvolution(const ConvolutionShape& shape, const ConvolutionAxes& axes)
      : samples(shape.samples),
        channels(shape.channels),
        filters(shape.filters),
        group_channels(shape.channels / shape.groups),
        group_filters(shape.filters / shape.groups),
        depth(axes.depth()),
        height(axes.height()),
        width(axes.width()) {}

  HOLDFAST_HOST_DEVICE std::int64_t inputs() const {
    return samples * depth.extent * height.extent * width.extent * channels;
  }
  HOLDFAST_HOST_DEVICE std::int64_t windows() const { return lines() * width.count; }
  HOLDFAST_HOST_DEVICE std::int64_t kernel_elements() const {
    return depth.kernel * height.kernel * width.kernel * group_channels * filters;
  }
  // Rows of windows over all samples.
  HOLDFAST_HOST_DEVICE std::int64_t lines() const { return samples * depth.count * height.count; }

  std::int64_t samples;
  std::int64_t channels;
  std::int64_t filters;
  std::int64_t group_channels;
  std::int64_t group_filters;
  DirectAxis depth;
  DirectAxis height;
  DirectAxis width;
};

// A place in an array [outer, depth, height, width, inner] with the given extents of all axes but the first.
struct VolumeElement {
  HOLDFAST_HOST_DEVICE VolumeElement(std::int64_t index, std::int64_t depths, std::int64_t rows, std::int64_t columns,
                                     std::int64_t inners) {
    inner = index % inners;
    index /= inners;
    column = index % columns;
    index /= columns;
    row = index % rows;
    index /= rows;
    depth = index % depths;
    outer = index / depths;
  }

  std::int64_t outer;
  std::int64_t depth;
  std::int64_t row;
  std::int64_t column;
  std::int64_t inner;
};

// Element `index` of the output, without the bias.
HOLDFAST_HOST_DEVICE inline float direct_output(const DirectConvolution& plan, std::int64_t index, const float* input,
                                                const float* kernel) {
  const VolumeElement output(index, plan.depth.count, plan.height.count, plan.width.count, plan.filters);
  // Filters of a group follow one another, and so do its channels.
  const std::int64_t first_channel = output.inner / plan.group_filters * plan.group_channels;
  float sum = 0;
  for (std::int64_t i = 0; i < plan.depth.kernel; ++i) {
    const std::int64_t depth = plan.depth.input_of(output.depth, i);
    if (depth < 0) continue;
    for (std::int64_t j = 0; j < plan.height.kernel; ++j) {
      const std::int64_t row = plan.height.input_of(output.row, j);
      if (row < 0) continue;
      for (std::int64_t k = 0; k < plan.width.kernel; ++k) {
        const std::int64_t column = plan.width.input_of(output.column, k);
        if (column < 0) continue;
        const std::int64_t line = (output.outer * plan.depth.extent + depth) * plan.height.extent + row;
        const float* const values = input + (line * plan.width.extent + column) * plan.channels + first_channel;
        const std::int64_t of_kernel = (i * plan.height.kernel + j) * plan.width.kernel + k;
        const float* const weights = kernel + of_kernel * plan.group_channels * plan.filters + output.inner;
        for (std::int64_t c = 0; c < plan.group_channels; ++c) sum += values[c] * weights[c * plan.filters];
      }
    }
  }
  return sum;
}

// Element `index` of the gradient of the input.
HOLDFAST_HOST_DEVICE inline float direct_input_gradient(const DirectConvolution& plan, std::int64_t index,
                                                        const float* kernel, const float* output_gradient) {
  const VolumeElement input(index, plan.depth.extent, plan.height.extent, plan.width.extent, plan.channels);
  // The other way round: all filters of the channel's group have read this element.
  const std::int64_t first_filter = input.inner / plan.group_channels * plan.group_filters;
  const std::int64_t group_channel = input.inner % plan.group_channels;
  float sum = 0;
  for (std::int64_t i = 0; i < plan.depth.kernel; ++i) {
    const std::int64_t depth = plan.depth.window_over(input.depth, i);
    if (depth < 0) continue;
    for (std::int64_t j = 0; j < plan.height.kernel; ++j) {
      const std::int64_t row = plan.height.window_over(input.row, j);
      if (row < 0) continue;
      for (std::int64_t k = 0; k < plan.width.kernel; ++k) {
        const std::int64_t column = plan.width.window_over(input.column, k);
        if (column < 0) continue;
        const std::int64_t line = (input.outer * plan.depth.count + depth) * plan.height.count + row;
        const float* const gradients =
            output_gradient + (line * plan.width.count + column) * plan.filters + first_filter;
        const std::int64_t of_kernel = (i * plan.height.kernel + j) * plan.width.kernel + k;
        const float* const weights =
            kernel + (of_kernel * plan.group_channels + group_channel) * plan.filters + first_filter;
        for (std::int64_t f = 0; f < plan.group_filters; ++f) sum += gradients[f] * weights[f];
      }
    }
  }
  return sum;
}

// What the windows of lines [first_line, end_line) add to element `index` of the gradient of the kernel.
HOLDFAST_HOST_DEVICE inline float direct_kernel_gradient(const DirectConvolution& plan, std::int64_t index,
                                                         std::int64_t first_line, std::int64_t end_line,
                                                         const float* input, const float* output_gradient) {
  const std::int64_t filter = index % plan.filters;
  const VolumeElement of_kernel(index / plan.filters, plan.depth.kernel, plan.height.kernel, plan.width.kernel,
                                plan.group_channels);
  const std::int64_t channel = filter / plan.group_filters * plan.group_channels + of_kernel.inner;
  float sum = 0;
  // Windows of the padding add nothing, so they are left out, and not added as zeros. A range of lines is a part that
  // is added to others later: a small kernel would keep few threads of a device busy.
  for (std::int64_t line = first_line; line < end_line; ++line) {
    // A line is [sample, depth, row]: a row of windows.
    const std::int64_t slice = line / plan.height.count;
    const std::int64_t row = plan.height.input_of(line % plan.height.count, of_kernel.row);
    const std::int64_t depth = plan.depth.input_of(slice % plan.depth.count, of_kernel.depth);
    if (row < 0 || depth < 0) continue;
    const std::int64_t sample = slice / plan.depth.count;
    const std::int64_t input_line = (sample * plan.depth.extent + depth) * plan.height.extent + row;
    const float* const values = input + input_line * plan.width.extent * plan.channels + channel;
    const float* const gradients = output_gradient + line * plan.width.count * plan.filters + filter;
    for (std::int64_t window = 0; window < plan.width.count; ++window) {
      const std::int64_t column = plan.width.input_of(window, of_kernel.column);
      if (column >= 0) sum += values[column * plan.channels] * gradients[window * plan.filters];
    }
  }
  return sum;
}

}  // namespace holdfast::compute
