#pragma once

// Convolution as a product of matrices, for host and device: each window of an image becomes a row of the column
// matrix, [sample, row, column] x [kernel row, kernel column, channel], whose product with the kernel, read as
// [kernel row, kernel column, channel] x [filter], is the output. Padding counts as zero.

#include "compute/arithmetic/image_element.h"
#include "compute/arithmetic/sliding_axis.h"
#include "compute/backend.h"

namespace holdfast::compute {

struct ConvolutionPlan {
  explicit ConvolutionPlan(const ConvolutionShape& shape)
      : samples(shape.samples),
        channels(shape.channels),
        filters(shape.filters),
        rows(sliding_axis(shape.height, shape.kernel_height, shape.stride_height, shape.padding)),
        columns(sliding_axis(shape.width, shape.kernel_width, shape.stride_width, shape.padding)) {}

  HOLDFAST_HOST_DEVICE std::int64_t sample_inputs() const { return rows.extent * columns.extent * channels; }
  HOLDFAST_HOST_DEVICE std::int64_t sample_windows() const { return rows.count * columns.count; }
  HOLDFAST_HOST_DEVICE std::int64_t window_elements() const { return rows.size * columns.size * channels; }

  // The column matrix is the input itself.
  bool is_pointwise() const { return rows.size == 1 && columns.size == 1 && rows.stride == 1 && columns.stride == 1; }

  std::int64_t samples;
  std::int64_t channels;
  std::int64_t filters;
  SlidingAxis rows;
  SlidingAxis columns;
};

// Element `index` of the column matrix.
HOLDFAST_HOST_DEVICE inline float column_element(const ConvolutionPlan& plan, const float* input, std::int64_t index) {
  const std::int64_t window = index / plan.window_elements();
  const ImageElement of_window(index % plan.window_elements(), plan.rows.size, plan.columns.size, plan.channels);
  const std::int64_t window_column = window % plan.columns.count;
  const std::int64_t window_row = window / plan.columns.count % plan.rows.count;
  const std::int64_t sample = window / plan.sample_windows();
  const std::int64_t row = window_row * plan.rows.stride - plan.rows.pad_before + of_window.row;
  const std::int64_t column = window_column * plan.columns.stride - plan.columns.pad_before + of_window.column;
  if (row < 0 || row >= plan.rows.extent || column < 0 || column >= plan.columns.extent) return 0;
  return input[((sample * plan.rows.extent + row) * plan.columns.extent + column) * plan.channels + of_window.channel];
}

// What input element `index` gets of the column matrix's gradient: of all windows over it, added in their order.
HOLDFAST_HOST_DEVICE inline float gradient_of_columns(const ConvolutionPlan& plan, const float* column_gradient,
                                                      std::int64_t index) {
  const ImageElement element(index, plan.rows.extent, plan.columns.extent, plan.channels);
  const IndexRange rows = plan.rows.windows_over(element.row);
  const IndexRange columns = plan.columns.windows_over(element.column);
  float sum = 0;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const std::int64_t kernel_row = element.row + plan.rows.pad_before - row * plan.rows.stride;
    for (std::int64_t column = columns.begin; column < columns.end; ++column) {
      const std::int64_t kernel_column = element.column + plan.columns.pad_before - column * plan.columns.stride;
      const std::int64_t window = (element.sample * plan.rows.count + row) * plan.columns.count + column;
      const std::int64_t of_window = (kernel_row * plan.columns.size + kernel_column) * plan.channels + element.channel;
      sum += column_gradient[window * plan.window_elements() + of_window];
    }
  }
  return sum;
}

}  // namespace holdfast::compute
