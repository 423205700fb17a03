#pragma once

// Pooling, one element at a time, for host and device.

#include "compute/arithmetic/image_element.h"
#include "compute/arithmetic/sliding_axis.h"
#include "compute/backend.h"

namespace holdfast::compute {

struct PoolingPlan {
  explicit PoolingPlan(const PoolingShape& shape)
      : samples(shape.samples),
        channels(shape.channels),
        rows(sliding_axis(shape.height, shape.pool_height, shape.stride_height, shape.padding)),
        columns(sliding_axis(shape.width, shape.pool_width, shape.stride_width, shape.padding)) {}

  std::int64_t input_elements() const { return samples * rows.extent * columns.extent * channels; }
  std::int64_t output_elements() const { return samples * rows.count * columns.count * channels; }

  std::int64_t samples;
  std::int64_t channels;
  SlidingAxis rows;
  SlidingAxis columns;
};

struct Maximum {
  float value;
  std::int32_t position;  // row * width + column of the input
};

// Of the window of output element `index`: the first of equal ones. Not a number is larger than all numbers, so that it
// is found.
HOLDFAST_HOST_DEVICE inline Maximum maximum_of_window(const PoolingPlan& plan, const float* input, std::int64_t index) {
  const ImageElement element(index, plan.rows.count, plan.columns.count, plan.channels);
  const IndexRange rows = plan.rows.elements_of(element.row);
  const IndexRange columns = plan.columns.elements_of(element.column);
  const float* const image = input + element.sample * plan.rows.extent * plan.columns.extent * plan.channels;
  Maximum found = {0, -1};
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    for (std::int64_t column = columns.begin; column < columns.end; ++column) {
      const std::int64_t position = row * plan.columns.extent + column;
      const float value = image[position * plan.channels + element.channel];
      const bool is_first = found.position < 0;
      if (is_first || value > found.value || (value != value && found.value == found.value)) {
        found = {value, static_cast<std::int32_t>(position)};
      }
    }
  }
  return found;
}

// What input element `index` gets of the gradients of the windows whose maximum it is, added in their order.
HOLDFAST_HOST_DEVICE inline float gradient_of_maximum(const PoolingPlan& plan, const float* output_gradient,
                                                      const std::int32_t* positions, std::int64_t index) {
  const ImageElement element(index, plan.rows.extent, plan.columns.extent, plan.channels);
  const IndexRange rows = plan.rows.windows_over(element.row);
  const IndexRange columns = plan.columns.windows_over(element.column);
  const auto position = static_cast<std::int32_t>(element.row * plan.columns.extent + element.column);
  float sum = 0;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    for (std::int64_t column = columns.begin; column < columns.end; ++column) {
      const std::int64_t window = (element.sample * plan.rows.count + row) * plan.columns.count + column;
      const std::int64_t output = window * plan.channels + element.channel;
      if (positions[output] == position) sum += output_gradient[output];
    }
  }
  return sum;
}

HOLDFAST_HOST_DEVICE inline std::int64_t elements_of_window(const IndexRange& rows, const IndexRange& columns) {
  return (rows.end - rows.begin) * (columns.end - columns.begin);
}

HOLDFAST_HOST_DEVICE inline float average_of_window(const PoolingPlan& plan, const float* input, std::int64_t index) {
  const ImageElement element(index, plan.rows.count, plan.columns.count, plan.channels);
  const IndexRange rows = plan.rows.elements_of(element.row);
  const IndexRange columns = plan.columns.elements_of(element.column);
  const float* const image = input + element.sample * plan.rows.extent * plan.columns.extent * plan.channels;
  float sum = 0;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    for (std::int64_t column = columns.begin; column < columns.end; ++column) {
      sum += image[(row * plan.columns.extent + column) * plan.channels + element.channel];
    }
  }
  return sum / static_cast<float>(elements_of_window(rows, columns));
}

HOLDFAST_HOST_DEVICE inline float gradient_of_average(const PoolingPlan& plan, const float* output_gradient,
                                                      std::int64_t index) {
  const ImageElement element(index, plan.rows.extent, plan.columns.extent, plan.channels);
  const IndexRange rows = plan.rows.windows_over(element.row);
  const IndexRange columns = plan.columns.windows_over(element.column);
  float sum = 0;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    for (std::int64_t column = columns.begin; column < columns.end; ++column) {
      const std::int64_t count = elements_of_window(plan.rows.elements_of(row), plan.columns.elements_of(column));
      const std::int64_t window = (element.sample * plan.rows.count + row) * plan.columns.count + column;
      sum += output_gradient[window * plan.channels + element.channel] / static_cast<float>(count);
    }
  }
  return sum;
}

}  // namespace holdfast::compute
