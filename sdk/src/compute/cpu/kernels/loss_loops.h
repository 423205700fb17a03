#pragma once

// See vector_kernels.h.

#include "compute/arithmetic/crossentropy.h"
#include "compute/arithmetic/lanes.h"
#include "compute/cpu/kernels/lane_sums.h"
#include "compute/cpu/kernels/vector_kernels.h"

namespace holdfast::compute {
namespace {

// The gradient is computed in both cases, so that the sum cannot depend on whether it is wanted.
template <ElementLoss (*kElement)(float, float)>
double element_losses(const float* outputs, const float* targets, std::int64_t count, float factor, float* gradient) {
  if (gradient == nullptr) {
    return sum_of_row(count, [=](std::int64_t i) { return kElement(outputs[i], targets[i]).loss; });
  }
  return sum_of_row(count, [=](std::int64_t i) {
    const ElementLoss element = kElement(outputs[i], targets[i]);
    gradient[i] = factor * element.gradient;
    return element.loss;
  });
}

double categorical_loss(const float* scores, const float* targets, std::int64_t count, float shift, double log_sum) {
  const SoftmaxRow row = {.largest = shift, .sum = 0, .log_sum = log_sum};
  return sum_of_row(count, [=](std::int64_t c) {
    const double loss = static_cast<double>(targets[c]) * loss_of_logit(row, scores[c]);
    // A target of zero keeps a score of minus infinity (a masked class) out of the loss.
    return targets[c] != 0 ? loss : 0.0;
  });
}

double sum(const float* values, std::int64_t count) {
  return sum_of_numbers(values, count);
}

void scale(float* array, std::int64_t count, float factor) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) array[i] = array[i] * factor;
}

void scale_and_subtract(float* array, const float* other, std::int64_t count, float factor, float other_factor) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) array[i] = array[i] * factor - other[i] * other_factor;
}

}  // namespace
}  // namespace holdfast::compute
