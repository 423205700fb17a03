#pragma once

// See vector_kernels.h.

#include "compute/arithmetic/activations.h"
#include "compute/cpu/kernels/vector_kernels.h"

namespace holdfast::compute {
namespace {

template <class Formula>
void activation_forward(const float* input, float* output, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) output[i] = Formula::value(input[i]);
}

template <class Formula>
void activation_backward(const float* kept, const float* output_gradient, float* input_gradient, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) input_gradient[i] = output_gradient[i] * Formula::derivative(kept[i]);
}

template <class Formula>
constexpr ActivationPasses kPassesOf = {activation_forward<Formula>, activation_backward<Formula>};

}  // namespace
}  // namespace holdfast::compute
