#pragma once

// See vector_kernels.h.

#include "compute/arithmetic/gradient_clipping.h"
#include "compute/arithmetic/optimizers.h"
#include "compute/cpu/kernels/vector_kernels.h"

namespace holdfast::compute {
namespace {

void adam(const AdamStep& step, std::int64_t count, const float* gradients, float* parameters, float* m, float* v) {
  // A local copy: the compiler need not fear that a store below changes it.
  const AdamStep same = step;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) adam_element(same, gradients[i], parameters[i], m[i], v[i]);
}

void sgd(const SgdStep& step, std::int64_t count, const float* gradients, float* parameters, float* velocity) {
  const float rate = step.learning_rate;
  const float momentum = step.momentum;
  if (velocity == nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) sgd_element(rate, gradients[i], parameters[i]);
  } else if (step.nesterov) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      nesterov_element(rate, momentum, gradients[i], parameters[i], velocity[i]);
    }
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      momentum_element(rate, momentum, gradients[i], parameters[i], velocity[i]);
    }
  }
}

double chunk_squares(const float* values, std::size_t count) {
  return squares_of_chunk(values, count);
}

void clip_values(const float* gradients, std::int64_t count, float limit, float* clipped) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) clipped[i] = clipped_value(gradients[i], limit);
}

void scaled(const float* array, std::int64_t count, float factor, float* result) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) result[i] = array[i] * factor;
}

}  // namespace
}  // namespace holdfast::compute
