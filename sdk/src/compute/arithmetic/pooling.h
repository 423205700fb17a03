#pragma once

// Pooling for host and device: where windows lie, and which of their elements is the maximum.

#include "compute/arithmetic/image_element.h"
#include "compute/arithmetic/sliding_axis.h"
#include "compute/backend.h"

namespace holdfast::compute {

struct PoolingPlan {
  explicit PoolingPlan(const PoolingShape& shape)
      : samples(shape.samples),
        channels(shape.channels),
        rows(sliding_axis(shape.height, shape.pool_height, shape.stride_height, shape.padding)),
        columns(sliding_axis(shape.width, shape.pool_width, shape.stride_width, shape.padding)) {
    // The elements of one image have numbers of 31 bits.
    HOLDFAST_ASSERT(shape.height * shape.width <= Divisor::kLargest / shape.channels);
  }

  HOLDFAST_HOST_DEVICE std::int64_t sample_inputs() const {
    return std::int64_t{rows.extent} * columns.extent * channels;
  }
  HOLDFAST_HOST_DEVICE std::int64_t sample_outputs() const {
    return std::int64_t{rows.count} * columns.count * channels;
  }
  // A batch may have more elements than 31 bits can count. Only an image must not.
  std::int64_t input_elements() const { return samples * sample_inputs(); }
  std::int64_t output_elements() const { return samples * sample_outputs(); }

  HOLDFAST_HOST_DEVICE ImageElement input(std::int64_t index) const {
    return ImageElement(index, rows.extent, columns.extent, channels);
  }
  HOLDFAST_HOST_DEVICE ImageElement output(std::int64_t index) const {
    return ImageElement(index, rows.count, columns.count, channels);
  }
  // The index of the element's channel in the first pixel of its image.
  HOLDFAST_HOST_DEVICE std::int64_t begin_of_inputs(const ImageElement& element) const {
    return element.sample * sample_inputs() + element.channel;
  }
  HOLDFAST_HOST_DEVICE std::int64_t begin_of_outputs(const ImageElement& element) const {
    return element.sample * sample_outputs() + element.channel;
  }

  std::int64_t samples;
  Divisor channels;
  SlidingAxis rows;
  SlidingAxis columns;
};

struct Maximum {
  float value = 0;
  std::int32_t position = -1;  // row * width + column of the input

  // The first of equal elements wins. A NaN counts as larger than all numbers, so that it is found.
  HOLDFAST_HOST_DEVICE void take(float candidate, std::int32_t at) {
    const bool is_first = position < 0;
    if (is_first || candidate > value || (candidate != candidate && value == value)) {
      value = candidate;
      position = at;
    }
  }
};

// Calls visit(row * width + column) for the elements that the window of an output covers, in order.
template <class Visit>
HOLDFAST_HOST_DEVICE void for_each_of_window(const PoolingPlan& plan, const ImageElement& output, const Visit& visit) {
  const IndexRange rows = plan.rows.elements_of(output.row);
  const IndexRange columns = plan.columns.elements_of(output.column);
  for (std::int32_t row = rows.begin; row < rows.end; ++row) {
    for (std::int32_t column = columns.begin; column < columns.end; ++column) {
      visit(row * plan.columns.extent + column);
    }
  }
}

// Calls visit(row, column) for the windows that cover an input, in order.
template <class Visit>
HOLDFAST_HOST_DEVICE void for_each_window_over(const PoolingPlan& plan, const ImageElement& input, const Visit& visit) {
  const IndexRange rows = plan.rows.windows_over(input.row);
  const IndexRange columns = plan.columns.windows_over(input.column);
  for (std::int32_t row = rows.begin; row < rows.end; ++row) {
    for (std::int32_t column = columns.begin; column < columns.end; ++column) visit(row, column);
  }
}

// What an average is divided by: elements_of() leaves padding out.
HOLDFAST_HOST_DEVICE inline float elements_of_window(const PoolingPlan& plan, std::int32_t row, std::int32_t column) {
  const IndexRange rows = plan.rows.elements_of(row);
  const IndexRange columns = plan.columns.elements_of(column);
  return static_cast<float>((rows.end - rows.begin) * (columns.end - columns.begin));
}

}  // namespace holdfast::compute
