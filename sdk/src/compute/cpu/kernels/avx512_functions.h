#pragma once

// Functions of activations and softmax for AVX-512, in fewer instructions than compilers make of the formulas in
// compute/arithmetic. Each element takes the same roundings, so its bits are those of the formula:
//
//   scale_by_power()     is one instruction for a product with a power of two, also where the result is subnormal
//   bounds of floats     pass a NaN on, so that no choice follows
//   a product that is exact may be contracted
//
// Four vectors side by side hide the latency of polynomials, each step of which waits for the one before: a scheduler
// of about a hundred instructions holds two elements of such chains. On an Intel Xeon of 2026-11-27, GELU in the cache
// took 0.86 ns an element with four vectors and 1.18 ns with one.
// docs/decisions/processor-loops.md

#ifdef __AVX512F__

#include <immintrin.h>

#include "compute/arithmetic/activations.h"
#include "compute/arithmetic/exponential.h"

// For lambdas. One that is called would take its vectors from memory.
#define HOLDFAST_INLINED __attribute__((always_inline))

namespace holdfast::compute {
namespace {

typedef float Floats16 __attribute__((vector_size(64)));
typedef std::int32_t Words16 __attribute__((vector_size(64)));

constexpr std::int64_t kVector = 16;
constexpr int kSideBySide = 4;

template <int kCount>
struct Vectors {
  Floats16 of[kCount];
};

[[gnu::always_inline]] inline Floats16 repeated(float number) {
  return Floats16{} + number;
}

// f(i) for each vector. A lambda, so that steps of all vectors alternate in the code.
template <int kCount, class Function>
[[gnu::always_inline]] inline Vectors<kCount> each(const Function& f) {
  Vectors<kCount> result;
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) result.of[i] = f(i);
  return result;
}

template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> operator+(const Vectors<kCount>& a, const Vectors<kCount>& b) {
  return each<kCount>([&](int i) { return a.of[i] + b.of[i]; });
}
template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> operator-(const Vectors<kCount>& a, const Vectors<kCount>& b) {
  return each<kCount>([&](int i) { return a.of[i] - b.of[i]; });
}
template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> operator*(const Vectors<kCount>& a, const Vectors<kCount>& b) {
  return each<kCount>([&](int i) { return a.of[i] * b.of[i]; });
}
template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> operator+(const Vectors<kCount>& a, float b) {
  return each<kCount>([&](int i) { return a.of[i] + b; });
}
template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> operator-(const Vectors<kCount>& a, float b) {
  return each<kCount>([&](int i) { return a.of[i] - b; });
}
template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> operator-(float a, const Vectors<kCount>& b) {
  return each<kCount>([&](int i) { return a - b.of[i]; });
}
template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> operator*(const Vectors<kCount>& a, float b) {
  return each<kCount>([&](int i) { return a.of[i] * b; });
}
template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> operator/(float a, const Vectors<kCount>& b) {
  return each<kCount>([&](int i) { return a / b.of[i]; });
}

template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> operator-(const Vectors<kCount>& a) {
  return each<kCount>([&](int i) { return -a.of[i]; });
}

// With masks of all lanes: the forms without one read an uninitialised operand in g++ 12, which warns of it.
constexpr __mmask16 kAllLanes = 0xFFFF;

// Where an operand is a NaN, these instructions take the second one, which is the NaN here.
template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> at_least(const Vectors<kCount>& a, float bound) {
  return each<kCount>([&](int i) { return _mm512_maskz_max_ps(kAllLanes, repeated(bound), a.of[i]); });
}
template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> at_most(const Vectors<kCount>& a, float bound) {
  return each<kCount>([&](int i) { return _mm512_maskz_min_ps(kAllLanes, repeated(bound), a.of[i]); });
}

template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> absolute(const Vectors<kCount>& a) {
  return each<kCount>(
      [&](int i) { return reinterpret_cast<Floats16>(reinterpret_cast<Words16>(a.of[i]) & 0x7FFFFFFF); });
}

// The magnitudes with other signs.
template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> with_signs_of(const Vectors<kCount>& magnitudes,
                                                            const Vectors<kCount>& signs) {
  constexpr auto kSign = static_cast<std::int32_t>(kSignBit);
  return each<kCount>([&](int i) {
    return reinterpret_cast<Floats16>((reinterpret_cast<Words16>(magnitudes.of[i]) & ~kSign) |
                                      (reinterpret_cast<Words16>(signs.of[i]) & kSign));
  });
}

// As ExponentialParts.
template <int kCount>
struct VectorParts {
  Vectors<kCount> shifted_n;
  Vectors<kCount> e_to_r;
};

template <int kCount>
[[gnu::always_inline]] inline VectorParts<kCount> exponential_parts(const Vectors<kCount>& x) {
  const Vectors<kCount> shifted = x * kLog2OfE + kRoundingShift;
  const Vectors<kCount> n = shifted - kRoundingShift;
  // This product is exact.
  const Vectors<kCount> high =
      each<kCount>([&](int i) { return _mm512_fnmadd_ps(n.of[i], repeated(kLogOf2High), x.of[i]); });
  return {shifted, exponential_series(high - n * kLogOf2Low)};
}

// e^x for x whose e^x is a normal float.
template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> exponential_near(const Vectors<kCount>& x) {
  const VectorParts<kCount> parts = exponential_parts(x);
  return each<kCount>([&](int i) {
    return reinterpret_cast<Floats16>(reinterpret_cast<Words16>(parts.e_to_r.of[i]) +
                                      (reinterpret_cast<Words16>(parts.shifted_n.of[i]) << 23));
  });
}

// e^x for x from -104 to 89, or a NaN.
template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> exponential_of_bounded(const Vectors<kCount>& x) {
  const VectorParts<kCount> parts = exponential_parts(x);
  const Vectors<kCount> n = parts.shifted_n - kRoundingShift;
  return each<kCount>([&](int i) { return _mm512_maskz_scalef_ps(kAllLanes, parts.e_to_r.of[i], n.of[i]); });
}

// For x that is not above 0.
template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> exponential_of_negative(const Vectors<kCount>& x) {
  return exponential_of_bounded(at_least(x, -104.0F));
}

// The vectors `near` where a mask says so, and `far` elsewhere.
template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> sum_where(const __mmask16 (&is_near)[kCount], const Vectors<kCount>& a,
                                                        const Vectors<kCount>& b, const Vectors<kCount>& far) {
  return each<kCount>([&](int i) { return _mm512_mask_add_ps(far.of[i], is_near[i], a.of[i], b.of[i]); });
}

template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> vector_value(Tanh, const Vectors<kCount>& x) {
  const Vectors<kCount> square = x * x;
  // A NaN may become the bound: the sum of a small x shows it.
  const Vectors<kCount> bounded = at_most(absolute(x), 40.0F);
  const Vectors<kCount> large = 1.0F - 2.0F / (exponential_near(bounded + bounded) + 1.0F);
  // |x| is below 0.625 where the square, a multiple of 2^-25 there, is below 0.390625 or rounds to it.
  __mmask16 is_small[kCount];
  for (int i = 0; i < kCount; ++i) {
    is_small[i] = _mm512_cmp_ps_mask(square.of[i], repeated(0.390625F), _CMP_NGE_UQ);
  }
  return with_signs_of(sum_where(is_small, x, x * square * tangent_series(square), large), x);
}

template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> vector_value(Sigmoid, const Vectors<kCount>& x) {
  return 1.0F / (exponential_of_bounded(at_most(at_least(-x, -80.0F), 89.0F)) + 1.0F);
}

// erf(x). Both of its polynomials are one, with coefficients that each lane chooses.
template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> error_of(const Vectors<kCount>& x) {
  const Vectors<kCount> magnitude = absolute(x);
  Vectors<kCount> t = at_most(magnitude, kErrorIsOneFrom);
  Vectors<kCount> p = (t * kErrorFar8 + kErrorFar7) * t + kErrorFar6;
  __mmask16 is_near[kCount];
  for (int i = 0; i < kCount; ++i) {
    is_near[i] = _mm512_cmp_ps_mask(magnitude.of[i], repeated(kErrorFarFrom), _CMP_NGE_UQ);
    t.of[i] = _mm512_mask_mul_ps(t.of[i], is_near[i], x.of[i], x.of[i]);
    p.of[i] = _mm512_mask_mov_ps(p.of[i], is_near[i], repeated(kErrorNear5));
  }
  const auto next = [&](float near, float far) HOLDFAST_INLINED {
    p = each<kCount>(
        [&](int i) { return p.of[i] * t.of[i] + _mm512_mask_mov_ps(repeated(far), is_near[i], repeated(near)); });
  };
  next(kErrorNear4, kErrorFar5);
  next(kErrorNear3, kErrorFar4);
  next(kErrorNear2, kErrorFar3);
  next(kErrorNear1, kErrorFar2);
  next(kErrorNear0, kErrorFar1);
  const Vectors<kCount> far = 1.0F - exponential_near(p * t + kErrorFar0);
  return with_signs_of(sum_where(is_near, magnitude, magnitude * p, far), x);
}

template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> vector_value(Gelu, const Vectors<kCount>& x) {
  return x * 0.5F * (error_of(x * Gelu::kRootOfHalf) + 1.0F);
}

template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> vector_derivative(Gelu, const Vectors<kCount>& x) {
  const Vectors<kCount> distribution = (error_of(x * Gelu::kRootOfHalf) + 1.0F) * 0.5F;
  return distribution + x * Gelu::kDensityAtZero * exponential_of_negative(-x * x * 0.5F);
}

// The lanes of the last vector of so many numbers.
[[gnu::always_inline]] inline __mmask16 first_lanes(std::int64_t count) {
  return count >= kVector ? kAllLanes : static_cast<__mmask16>((1U << count) - 1);
}

template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> load(__mmask16 mask, const float* from) {
  return each<kCount>([&](int i) { return _mm512_maskz_loadu_ps(mask, from + i * kVector); });
}

template <int kCount>
[[gnu::always_inline]] inline void store(const Vectors<kCount>& vectors, __mmask16 mask, float* to) {
  for (int i = 0; i < kCount; ++i) _mm512_mask_storeu_ps(to + i * kVector, mask, vectors.of[i]);
}

// Calls step(begin, vectors, mask) for all elements: kSideBySide whole vectors at a time, then one by one. The mask has
// the lanes of the last one.
template <class Step>
[[gnu::always_inline]] inline void for_vectors(const float* input, std::int64_t count, const Step& step) {
  std::int64_t begin = 0;
  for (; begin + kSideBySide * kVector <= count; begin += kSideBySide * kVector) {
    step(begin, load<kSideBySide>(kAllLanes, input + begin), kAllLanes);
  }
  for (; begin < count; begin += kVector) {
    const __mmask16 mask = first_lanes(count - begin);
    step(begin, load<1>(mask, input + begin), mask);
  }
}

template <class Formula>
void values_in_vectors(Formula formula, const float* input, float* output, std::int64_t count) {
  for_vectors(input, count, [=](std::int64_t begin, const auto& x, __mmask16 mask) HOLDFAST_INLINED {
    store(vector_value(formula, x), mask, output + begin);
  });
}

template <class Formula>
void derivatives_in_vectors(Formula formula, const float* input, float* result, std::int64_t count) {
  for_vectors(input, count, [=](std::int64_t begin, const auto& x, __mmask16 mask) HOLDFAST_INLINED {
    store(vector_derivative(formula, x), mask, result + begin);
  });
}

// Times the gradient of the output.
template <class Formula>
void derivatives_in_vectors(Formula formula, const float* input, const float* output_gradient, float* result,
                            std::int64_t count) {
  for_vectors(
      input, count, [=]<int kCount>(std::int64_t begin, const Vectors<kCount>& x, __mmask16 mask) HOLDFAST_INLINED {
        store(load<kCount>(mask, output_gradient + begin) * vector_derivative(formula, x), mask, result + begin);
      });
}

}  // namespace
}  // namespace holdfast::compute

#endif
