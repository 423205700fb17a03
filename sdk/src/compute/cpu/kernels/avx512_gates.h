#pragma once

// SiLU and the approximation of GELU by tanh, and their derivatives, for AVX-512: what avx512_functions.h has of
// sigmoid and tanh, and a few steps more after the division. The bits are those of compute/arithmetic/activations.h.

#ifdef __AVX512F__

#include "compute/cpu/kernels/avx512_functions.h"

namespace holdfast::compute {
namespace {

// Stands for the derivative of a formula, which is a formula itself.
template <class Formula>
struct DerivativeOf {};

template <int kCount, class Between>
[[gnu::always_inline]] inline UndividedSigmoid<kCount> early_part(Silu, const Vectors<kCount>& x,
                                                                  const Between& between) {
  return early_part(Sigmoid{}, x, between);
}
template <int kCount, class Between>
[[gnu::always_inline]] inline UndividedSigmoid<kCount> early_part(DerivativeOf<Silu>, const Vectors<kCount>& x,
                                                                  const Between& between) {
  return early_part(Sigmoid{}, x, between);
}

template <int kCount>
[[gnu::always_inline]] inline Floats16 late_part(Silu, const UndividedSigmoid<kCount>& of, int k, Floats16 x) {
  return x * late_part(Sigmoid{}, of, k, x);
}
template <int kCount>
[[gnu::always_inline]] inline Floats16 late_part(DerivativeOf<Silu>, const UndividedSigmoid<kCount>& of, int k,
                                                 Floats16 x) {
  const Floats16 s = late_part(Sigmoid{}, of, k, x);
  return s * (1.0F + x * (1.0F - s));
}

// The argument of tanh has the sign of x, so late_part() of tanh takes x for it.
template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> argument_of_tanh(const Vectors<kCount>& x) {
  return (x + x * GeluTanh::kCubic * x * x) * GeluTanh::kRoot;
}
template <int kCount, class Between>
[[gnu::always_inline]] inline UndividedTanh<kCount> early_part(GeluTanh, const Vectors<kCount>& x,
                                                               const Between& between) {
  return early_part(Tanh{}, argument_of_tanh(x), between);
}
template <int kCount, class Between>
[[gnu::always_inline]] inline UndividedTanh<kCount> early_part(DerivativeOf<GeluTanh>, const Vectors<kCount>& x,
                                                               const Between& between) {
  return early_part(Tanh{}, argument_of_tanh(x), between);
}

template <int kCount>
[[gnu::always_inline]] inline Floats16 late_part(GeluTanh, const UndividedTanh<kCount>& of, int k, Floats16 x) {
  return x * 0.5F * (1.0F + late_part(Tanh{}, of, k, x));
}
template <int kCount>
[[gnu::always_inline]] inline Floats16 late_part(DerivativeOf<GeluTanh>, const UndividedTanh<kCount>& of, int k,
                                                 Floats16 x) {
  const Floats16 t = late_part(Tanh{}, of, k, x);
  const Floats16 of_argument = 1.0F + x * (3 * GeluTanh::kCubic) * x;
  return 0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * GeluTanh::kRoot * of_argument;
}

template <>
constexpr int kSideBySideOf<GeluTanh> = kFewSideBySide;
template <>
constexpr int kSideBySideOf<DerivativeOf<GeluTanh>> = kFewSideBySide;

template <EndsWithDivision Formula>
inline void derivatives_in_vectors(Formula, const float* input, float* result,
                                   std::int64_t count) requires EndsWithDivision<DerivativeOf<Formula>> {
  values_in_vectors(DerivativeOf<Formula>{}, input, result, count);
}

}  // namespace
}  // namespace holdfast::compute

#endif
