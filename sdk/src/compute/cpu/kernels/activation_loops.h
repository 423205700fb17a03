#pragma once

// See vector_kernels.h. Formulas that AVX-512 has in named vectors are computed by these, others with an early part in
// two loops, and the rest in one. The bits are the same.

#include "compute/arithmetic/activations.h"
#include "compute/cpu/kernels/avx512_functions.h"
#include "compute/cpu/kernels/avx512_gates.h"
#include "compute/cpu/kernels/avx512_gelu.h"
#include "compute/cpu/kernels/vector_kernels.h"

namespace holdfast::compute {
namespace {

#ifdef __AVX512F__
// Formulas that AVX-512 has in named vectors.
template <class Formula>
concept HasVectorValue = requires(float* floats) {
  values_in_vectors(Formula{}, floats, floats, 0);
};
template <class Formula>
concept HasVectorDerivative = requires(float* floats) {
  derivatives_in_vectors(Formula{}, floats, floats, 0);
};
#else
template <class Formula>
concept HasVectorValue = false;
template <class Formula>
concept HasVectorDerivative = false;
#endif

template <class Formula>
concept HasEarlyPart = requires {
  Formula::early(0.0F);
};

// Calls finish(i, Formula::early(input[i])) for each i, in two loops for the reason in activations.h. The early parts
// of a block stay in the cache.
template <class Formula, class Finish>
[[gnu::always_inline]] inline void in_two_parts(const float* input, std::int64_t count, const Finish& finish) {
  constexpr std::int64_t kBlock = 64;
  alignas(64) float early[kBlock];
  std::int64_t begin = 0;
  for (; begin + kBlock <= count; begin += kBlock) {
#pragma omp simd
    for (std::int64_t i = 0; i < kBlock; ++i) early[i] = Formula::early(input[begin + i]);
#pragma omp simd
    for (std::int64_t i = 0; i < kBlock; ++i) finish(begin + i, early[i]);
  }
  // Fewer elements than a block are left, for which one loop will do.
#pragma omp simd
  for (std::int64_t i = begin; i < count; ++i) finish(i, Formula::early(input[i]));
}

template <class Formula>
void activation_forward(const float* input, float* output, std::int64_t count) {
  if constexpr (HasVectorValue<Formula>) {
    values_in_vectors(Formula{}, input, output, count);
  } else if constexpr (HasEarlyPart<Formula>) {
    in_two_parts<Formula>(input, count,
                          [=](std::int64_t i, float early) { output[i] = Formula::late_value(input[i], early); });
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) output[i] = Formula::value(input[i]);
  }
}

template <class Formula>
void activation_backward(const float* kept, const float* output_gradient, float* input_gradient, std::int64_t count) {
  if constexpr (HasVectorDerivative<Formula>) {
    derivatives_in_vectors(Formula{}, kept, output_gradient, input_gradient, count);
  } else if constexpr (HasEarlyPart<Formula>) {
    in_two_parts<Formula>(kept, count, [=](std::int64_t i, float early) {
      input_gradient[i] = output_gradient[i] * Formula::late_derivative(kept[i], early);
    });
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) input_gradient[i] = output_gradient[i] * Formula::derivative(kept[i]);
  }
}

// The derivative alone, of a formula that is differentiated by its input. Plans multiply it by the gradient of the
// output in a chain.
template <class Formula>
void activation_slope(const float* input, float* result, std::int64_t count) {
  if constexpr (HasVectorDerivative<Formula>) {
    derivatives_in_vectors(Formula{}, input, result, count);
  } else if constexpr (HasEarlyPart<Formula>) {
    in_two_parts<Formula>(input, count,
                          [=](std::int64_t i, float early) { result[i] = Formula::late_derivative(input[i], early); });
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) result[i] = Formula::derivative(input[i]);
  }
}

template <class Formula>
constexpr ActivationPasses kPassesOf = {activation_forward<Formula>, activation_backward<Formula>};

}  // namespace
}  // namespace holdfast::compute
