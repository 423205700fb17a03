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
        columns(sliding_axis(shape.width, shape.kernel_width, shape.stride_width, shape.padding)) {
    // The elements of one image, and those of one window, have numbers of 31 bits.
    HOLDFAST_ASSERT(shape.height * shape.width <= Divisor::kLargest / shape.channels);
    HOLDFAST_ASSERT(shape.kernel_height * shape.kernel_width <= Divisor::kLargest / shape.channels);
  }

  HOLDFAST_HOST_DEVICE std::int64_t sample_inputs() const {
    return std::int64_t{rows.extent} * columns.extent * channels;
  }
  HOLDFAST_HOST_DEVICE std::int64_t sample_windows() const { return std::int64_t{rows.count} * columns.count; }
  HOLDFAST_HOST_DEVICE std::int64_t window_elements() const {
    return std::int64_t{rows.size} * columns.size * channels;
  }

  // The column matrix is the input itself.
  bool is_pointwise() const { return rows.size == 1 && columns.size == 1 && rows.stride == 1 && columns.stride == 1; }

  std::int64_t samples;
  Divisor channels;
  std::int64_t filters;
  SlidingAxis rows;
  SlidingAxis columns;
};

inline constexpr std::int64_t kPadding = -1;

// The index in the images of element `index` of the column matrix, or kPadding.
HOLDFAST_HOST_DEVICE inline std::int64_t input_of_column_element(const ConvolutionPlan& plan, std::int64_t index) {
  // The index is split into a window and a position in it, and then the window into image, row and column.
  const ImageElement of_window(index, plan.rows.size, plan.columns.size, plan.channels);
  const ImageElement window(of_window.sample, plan.rows.count, plan.columns.count, Divisor::one());
  const std::int32_t row = window.row * plan.rows.stride - plan.rows.pad_before + of_window.row;
  const std::int32_t column = window.column * plan.columns.stride - plan.columns.pad_before + of_window.column;
  if (row < 0 || row >= plan.rows.extent || column < 0 || column >= plan.columns.extent) return kPadding;
  const std::int32_t pixel = row * plan.columns.extent + column;
  return window.sample * plan.sample_inputs() + pixel * plan.channels + of_window.channel;
}

// Calls visit(index) for the elements of the column matrix that are copies of input element `input`, one for each
// window over it, in order.
template <class Visit>
HOLDFAST_HOST_DEVICE void for_each_column_element(const ConvolutionPlan& plan, std::int64_t input, const Visit& visit) {
  const ImageElement element(input, plan.rows.extent, plan.columns.extent, plan.channels);
  const IndexRange rows = plan.rows.windows_over(element.row);
  const IndexRange columns = plan.columns.windows_over(element.column);
  for (std::int32_t row = rows.begin; row < rows.end; ++row) {
    const std::int32_t kernel_row = element.row + plan.rows.pad_before - row * plan.rows.stride;
    for (std::int32_t column = columns.begin; column < columns.end; ++column) {
      const std::int32_t kernel_column = element.column + plan.columns.pad_before - column * plan.columns.stride;
      const std::int64_t window = element.sample * plan.sample_windows() + row * plan.columns.count + column;
      const std::int32_t of_window = (kernel_row * plan.columns.size + kernel_column) * plan.channels + element.channel;
      visit(window * plan.window_elements() + of_window);
    }
  }
}

}  // namespace holdfast::compute
