#pragma once

// Functions of activations and softmax for AVX-512, in fewer instructions than compilers make of the formulas in
// compute/arithmetic. Each element takes the same roundings, so its bits are those of the formula:
//
//   times_power_of_two() is one instruction for a product with a power of two, also where the result is subnormal
//   bounds of floats     pass a NaN on, so that no choice follows
//   a product that is exact may be contracted
//
// Eight vectors side by side hide the latency of polynomials, each step of which waits for the one before: a scheduler
// of about a hundred instructions holds two elements of such chains.
// docs/decisions/processor-loops.md

#ifdef __AVX512F__

#include <immintrin.h>

#include "compute/arithmetic/activations.h"
#include "compute/arithmetic/exponential.h"
#include "compute/cpu/kernels/loop_hints.h"

namespace holdfast::compute {
namespace {

typedef float Floats16 __attribute__((vector_size(64)));
typedef std::int32_t Words16 __attribute__((vector_size(64)));

constexpr std::int64_t kVector = 16;
constexpr int kSideBySide = 8;
constexpr int kFewSideBySide = 4;

// How many vectors of a formula are side by side.
template <class Formula>
constexpr int kSideBySideOf = kSideBySide;
// While a group is computed, what the one before has to divide waits on the stack. On an Intel Xeon of 2026-11-30, four
// vectors took 0.9 times as long as six.
template <>
constexpr int kSideBySideOf<Tanh> = kFewSideBySide;

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
#pragma GCC unroll 8
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

// The smaller one of |a| and a bound. Where a is a NaN, the bound.
template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> bounded_magnitude(const Vectors<kCount>& a, float bound) {
  constexpr int kLesserMagnitudeWithoutSign = 0b1010;
  return each<kCount>(
      [&](int i) { return _mm512_maskz_range_ps(kAllLanes, a.of[i], repeated(bound), kLesserMagnitudeWithoutSign); });
}

// The magnitudes with other signs.
template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> with_signs_of(const Vectors<kCount>& magnitudes,
                                                            const Vectors<kCount>& signs) {
  constexpr int kChoice = 0xD8;  // of bits: the sign where the mask is set, and the magnitude elsewhere
  const __m512i sign = _mm512_set1_epi32(static_cast<std::int32_t>(kSignBit));
  return each<kCount>([&](int i) {
    return reinterpret_cast<Floats16>(_mm512_maskz_ternarylogic_epi32(
        kAllLanes, reinterpret_cast<__m512i>(magnitudes.of[i]), reinterpret_cast<__m512i>(signs.of[i]), sign, kChoice));
  });
}

// Lanes of each vector.
template <int kCount>
struct Masks {
  __mmask16 of[kCount];
};

template <int kComparison, int kCount>
[[gnu::always_inline]] inline Masks<kCount> where(const Vectors<kCount>& a, float bound) {
  Masks<kCount> masks;
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i) masks.of[i] = _mm512_cmp_ps_mask(a.of[i], repeated(bound), kComparison);
  return masks;
}
// Where a is at least a bound. Not where it is a NaN.
template <int kCount>
[[gnu::always_inline]] inline Masks<kCount> where_at_least(const Vectors<kCount>& a, float bound) {
  return where<_CMP_GE_OQ>(a, bound);
}

// `there` in the lanes of the masks, and `elsewhere` in the others.
template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> choice(const Masks<kCount>& masks, const Vectors<kCount>& there,
                                                     const Vectors<kCount>& elsewhere) {
  return each<kCount>([&](int i) { return _mm512_mask_mov_ps(elsewhere.of[i], masks.of[i], there.of[i]); });
}
template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> choice(const Masks<kCount>& masks, float there, float elsewhere) {
  return each<kCount>([&](int i) { return _mm512_mask_mov_ps(repeated(elsewhere), masks.of[i], repeated(there)); });
}

// Numbers times 2^n, also where the result is subnormal, in the lanes of the masks, and 0 in the others.
template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> times_power_of_two(const Masks<kCount>& masks,
                                                                 const Vectors<kCount>& numbers,
                                                                 const Vectors<kCount>& n) {
  return each<kCount>([&](int i) { return _mm512_maskz_scalef_ps(masks.of[i], numbers.of[i], n.of[i]); });
}
template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> times_power_of_two(const Vectors<kCount>& numbers,
                                                                 const Vectors<kCount>& n) {
  return each<kCount>([&](int i) { return _mm512_maskz_scalef_ps(kAllLanes, numbers.of[i], n.of[i]); });
}

// What is done after step k of a function, for k below kSideBySide: nothing, or a division of others.
struct NothingBetween {
  [[gnu::always_inline]] inline void operator()(int) const {}
};

// e^r for |r| <= log(2) / 2, as exponential_series().
template <int kCount, class Between>
[[gnu::always_inline]] inline Vectors<kCount> exponential_series(const Vectors<kCount>& r, const Between& between) {
  between(3);
  Vectors<kCount> p = r * kExponential6 + kExponential5;
  between(4);
  p = p * r + kExponential4;
  between(5);
  p = p * r + kExponential3;
  between(6);
  p = p * r + kExponential2;
  between(7);
  return (p * (r * r) + r) + 1.0F;
}

// A number is n log(2) + r, with n whole and |r| at most log(2) / 2.
template <int kCount>
struct ReducedArgument {
  Vectors<kCount> n;
  Vectors<kCount> r;
};

// For numbers from -104 to 89.
template <int kCount, class Between = NothingBetween>
[[gnu::always_inline]] inline ReducedArgument<kCount> reduced_argument(const Vectors<kCount>& x,
                                                                       const Between& between = {}) {
  between(0);
  const Vectors<kCount> n = (x * kLog2OfE + kRoundingShift) - kRoundingShift;
  between(1);
  // This product is exact.
  const Vectors<kCount> high =
      each<kCount>([&](int i) { return _mm512_fnmadd_ps(n.of[i], repeated(kLogOf2High), x.of[i]); });
  between(2);
  return {n, high - n * kLogOf2Low};
}

// e^x for x from -104 to 89, or a NaN.
template <int kCount, class Between = NothingBetween>
[[gnu::always_inline]] inline Vectors<kCount> exponential_of_bounded(const Vectors<kCount>& x,
                                                                     const Between& between = {}) {
  const ReducedArgument<kCount> of = reduced_argument(x, between);
  return times_power_of_two(exponential_series(of.r, between), of.n);
}

// For x that is not above 0. Where n is below -150 it is 0, and no product: an Intel Xeon took some 150 cycles for
// those that are subnormal or round to 0. Masked scores are such numbers.
template <int kCount, class Between = NothingBetween>
[[gnu::always_inline]] inline Vectors<kCount> exponential_of_negative(const Vectors<kCount>& x,
                                                                      const Between& between = {}) {
  const ReducedArgument<kCount> of = reduced_argument(x, between);
  const Vectors<kCount> e_to_r = exponential_series(of.r, between);
  return times_power_of_two(where<_CMP_NLT_UQ>(of.n, -150.0F), e_to_r, of.n);
}

// Functions that end with a division have two parts, so that a loop can divide for some vectors while it computes the
// others: early_part() leaves what is divided, and late_part() makes value k of that.

// The value is the difference of the minuend and 1 / divisor.
template <int kCount>
struct UndividedTanh {
  Vectors<kCount> minuends;
  Vectors<kCount> divisors;
};

// Both polynomials are one, with coefficients that each lane chooses: that of a small x, and that of the exponential.
// The latter works with r / 2, so that 2 |x| need not be computed: its coefficients are those of exponential_series()
// times powers of two, which make half of e^r, and the quotient is that of half of both numbers.
template <int kCount, class Between>
[[gnu::always_inline]] inline UndividedTanh<kCount> early_part(Tanh, const Vectors<kCount>& x, const Between& between) {
  const Vectors<kCount> square = x * x;
  // |x| is below 0.625 where the square, a multiple of 2^-25 there, is below 0.390625 or rounds to it.
  const Masks<kCount> is_large = where_at_least(square, 0.390625F);
  between(0);
  const Vectors<kCount> bounded = bounded_magnitude(x, 40.0F);
  const Vectors<kCount> n = (bounded * (2 * kLog2OfE) + kRoundingShift) - kRoundingShift;
  between(1);
  // This product is exact.
  const Vectors<kCount> high =
      each<kCount>([&](int i) { return _mm512_fnmadd_ps(n.of[i], repeated(kLogOf2High / 2), bounded.of[i]); });
  const Vectors<kCount> low = n * (kLogOf2Low / 2);
  // Half of r where x is large, and elsewhere the square: one instruction subtracts and chooses.
  const Vectors<kCount> t =
      each<kCount>([&](int i) { return _mm512_mask_sub_ps(square.of[i], is_large.of[i], high.of[i], low.of[i]); });
  between(2);

  const Vectors<kCount> first = choice(is_large, t, x);
  between(3);
  Vectors<kCount> p = t * choice(is_large, 32 * kExponential6, kTangent11);
  p = p + choice(is_large, 16 * kExponential5, kTangent9);
  between(4);
  p = p * t + choice(is_large, 8 * kExponential4, kTangent7);
  between(5);
  p = p * t + choice(is_large, 4 * kExponential3, kTangent5);
  between(6);
  p = p * t + choice(is_large, 2 * kExponential2, kTangent3);
  between(7);
  const Vectors<kCount> sum = p * (first * t) + first;
  // An infinite divisor leaves the sum as it is.
  const Vectors<kCount> scaled = times_power_of_two(sum + 0.5F, n);
  return {choice(is_large, each<kCount>([](int) { return repeated(1.0F); }), sum), each<kCount>([&](int i) {
            return _mm512_mask_add_ps(repeated(kInfiniteFloat), is_large.of[i], scaled.of[i], repeated(0.5F));
          })};
}

template <int kCount>
[[gnu::always_inline]] inline Floats16 late_part(Tanh, const UndividedTanh<kCount>& of, int k, Floats16 x) {
  return with_signs_of(Vectors<1>{{of.minuends.of[k] - 1.0F / of.divisors.of[k]}}, Vectors<1>{{x}}).of[0];
}

template <int kCount>
struct UndividedSigmoid {
  Vectors<kCount> divisors;
};

template <int kCount, class Between>
[[gnu::always_inline]] inline UndividedSigmoid<kCount> early_part(Sigmoid, const Vectors<kCount>& x,
                                                                  const Between& between) {
  return {exponential_of_bounded(at_most(at_least(-x, -80.0F), 89.0F), between) + 1.0F};
}

template <int kCount>
[[gnu::always_inline]] inline Floats16 late_part(Sigmoid, const UndividedSigmoid<kCount>& of, int k, Floats16) {
  return 1.0F / of.divisors.of[k];
}

template <class Formula>
concept EndsWithDivision = requires {
  early_part(Formula{}, Vectors<1>{}, NothingBetween{});
};

template <EndsWithDivision Formula, int kCount>
[[gnu::always_inline]] inline Vectors<kCount> vector_value(Formula formula, const Vectors<kCount>& x) {
  const auto undivided = early_part(formula, x, NothingBetween{});
  return each<kCount>([&](int i) { return late_part(formula, undivided, i, x.of[i]); });
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

// Calls step(begin, vectors, mask) for all elements from `begin` on: kCount whole vectors at a time, then fewer. The
// mask has the lanes of the last one.
template <int kCount, class Step>
[[gnu::always_inline]] inline void for_vectors(const float* input, std::int64_t begin, std::int64_t count,
                                               const Step& step) {
  for (; begin + kCount * kVector <= count; begin += kCount * kVector) {
    step(begin, load<kCount>(kAllLanes, input + begin), kAllLanes);
  }
  if (kCount > kFewSideBySide && begin + kFewSideBySide * kVector <= count) {
    step(begin, load<kFewSideBySide>(kAllLanes, input + begin), kAllLanes);
    begin += kFewSideBySide * kVector;
  }
  for (; begin < count; begin += kVector) {
    const __mmask16 mask = first_lanes(count - begin);
    step(begin, load<1>(mask, input + begin), mask);
  }
}

// The values of all whole groups of vectors. Returns how many these are. A division takes about as long as 20 other
// instructions, which run meanwhile. So each group is divided while the next one is computed.
template <EndsWithDivision Formula>
[[gnu::always_inline]] inline std::int64_t values_of_groups(Formula formula, const float* input, float* output,
                                                            std::int64_t count) {
  constexpr int kCount = kSideBySideOf<Formula>;
  constexpr std::int64_t kGroup = kCount * kVector;
  if (count < kGroup) return 0;
  auto last = early_part(formula, load<kCount>(kAllLanes, input), NothingBetween{});
  const auto divide = [&](std::int64_t begin, int k) HOLDFAST_INLINED {
    const std::int64_t at = begin + k * kVector;
    _mm512_storeu_ps(output + at, late_part(formula, last, k, _mm512_loadu_ps(input + at)));
  };
  std::int64_t begin = kGroup;
  for (; begin + kGroup <= count; begin += kGroup) {
    last = early_part(formula, load<kCount>(kAllLanes, input + begin), [&](int k) HOLDFAST_INLINED {
      if (k >= kCount) return;
      keep_order();
      ask_ahead(input + begin + k * kVector);
      ask_ahead(output + begin + k * kVector);
      divide(begin - kGroup, k);
      keep_order();
    });
  }
  for (int k = 0; k < kCount; ++k) divide(begin - kGroup, k);
  return begin;
}

template <EndsWithDivision Formula>
void values_in_vectors(Formula formula, const float* input, float* output, std::int64_t count) {
  const std::int64_t begin = values_of_groups(formula, input, output, count);
  for_vectors<kSideBySideOf<Formula>>(input, begin, count,
                                      [=](std::int64_t at, const auto& x, __mmask16 mask)
                                          HOLDFAST_INLINED { store(vector_value(formula, x), mask, output + at); });
}

}  // namespace
}  // namespace holdfast::compute

#endif
