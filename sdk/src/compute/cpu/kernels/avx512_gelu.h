#pragma once

// GELU for AVX-512. Its error function has a formula near 0 and a longer one far from it, and of inputs that are
// normally distributed a fifth is far. So all values are computed by the first formula, and those that are far by the
// second, gathered in vectors of their own. The bits are those of compute/arithmetic/activations.h.
//
// Both formulas compute halves of what is written there, with coefficients times powers of two: that is exact, and
// saves to halve x. It is not exact where x is so small that half of it is subnormal, but then the result is x / 2.
//
// On an Intel Xeon of 2026-11-30, values took 0.75 times as long as with one formula whose coefficients each lane
// chooses, and derivatives 0.86 times. docs/decisions/processor-loops.md

#ifdef __AVX512F__

#include <concepts>

#include "compute/cpu/kernels/avx512_functions.h"

namespace holdfast::compute {
namespace {

// Half of e^(2h), for 2h as exponential_of_bounded() takes it. The series works with r / 2.
template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> half_exponential(const Vectors<kCount>& h) {
  const Vectors<kCount> n = (h * (2 * kLog2OfE) + kRoundingShift) - kRoundingShift;
  // This product is exact.
  const Vectors<kCount> high =
      each<kCount>([&](int i) { return _mm512_fnmadd_ps(n.of[i], repeated(kLogOf2High / 2), h.of[i]); });
  const Vectors<kCount> t = high - n * (kLogOf2Low / 2);
  Vectors<kCount> p = t * (32 * kExponential6) + 16 * kExponential5;
  p = p * t + 8 * kExponential4;
  p = p * t + 4 * kExponential3;
  p = p * t + 2 * kExponential2;
  return times_power_of_two((p * (t * t) + t) + 0.5F, n);
}

// factor * e^(-x / 2) for x from 0 to 2, for which n is 0 or -1. Others give any number. The series works with
// t = -2r, and its sum is 2 - 2 e^r: coefficients are times powers of -1/2, and the factor comes halved. It is halved
// once more where n is -1.
template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> times_exponential_of_half(const Vectors<kCount>& half_factor,
                                                                        const Vectors<kCount>& x) {
  // From here up -x / 2 * kLog2OfE rounds to -1.
  const Masks<kCount> is_less = where_at_least(x, 0.693147242F);
  const Vectors<kCount> high = each<kCount>(
      [&](int i) { return _mm512_mask_sub_ps(x.of[i], is_less.of[i], x.of[i], repeated(2 * kLogOf2High)); });
  const Vectors<kCount> t = each<kCount>(
      [&](int i) { return _mm512_mask_sub_ps(high.of[i], is_less.of[i], high.of[i], repeated(2 * kLogOf2Low)); });
  Vectors<kCount> p = t * (kExponential6 / -32) + kExponential5 / 16;
  p = p * t - kExponential4 / 8;
  p = p * t + kExponential3 / 4;
  p = p * t - kExponential2 / 2;
  const Vectors<kCount> twice = 2.0F - (p * (t * t) + t);
  const Vectors<kCount> factor = each<kCount>(
      [&](int i) { return _mm512_mask_mul_ps(half_factor.of[i], is_less.of[i], half_factor.of[i], repeated(0.5F)); });
  return factor * twice;
}

// (1 + erf(2h)) / 2 where 2h is near 0, of h and its square.
template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> near_distribution(const Vectors<kCount>& h,
                                                                const Vectors<kCount>& square) {
  Vectors<kCount> p = square * (1024 * kErrorNear5) + 256 * kErrorNear4;
  p = p * square + 64 * kErrorNear3;
  p = p * square + 16 * kErrorNear2;
  p = p * square + 4 * kErrorNear1;
  p = p * square + kErrorNear0;
  return (h + h * p) + 0.5F;
}

// And where 2h is far from 0.
template <int kCount>
[[gnu::always_inline]] inline Vectors<kCount> far_distribution(const Vectors<kCount>& h) {
  const Vectors<kCount> t = bounded_magnitude(h, kErrorIsOneFrom / 2);
  Vectors<kCount> q = t * (128 * kErrorFar8) + 64 * kErrorFar7;
  q = q * t + 32 * kErrorFar6;
  q = q * t + 16 * kErrorFar5;
  q = q * t + 8 * kErrorFar4;
  q = q * t + 4 * kErrorFar3;
  q = q * t + 2 * kErrorFar2;
  q = q * t + kErrorFar1;
  q = q * t + kErrorFar0 / 2;
  return with_signs_of(0.5F - half_exponential(q), h) + 0.5F;
}

// What the formula near 0 gives, where the other one is needed, and of what that computes its results. A NaN is not
// far, and its result here is a NaN.
template <int kCount>
struct NearPart {
  Vectors<kCount> results;
  Masks<kCount> is_far;
  Vectors<kCount> kept;
};

// A number is far where its square is at least that of kErrorFarFrom: squares of floats around it differ.
template <int kCount>
[[gnu::always_inline]] inline Masks<kCount> where_far(const Vectors<kCount>& square_of_half) {
  return where_at_least(square_of_half, kErrorFarFrom * kErrorFarFrom / 4);
}

// The factor of an input in its GELU.
struct GeluFactor {
  template <int kCount>
  [[gnu::always_inline]] static NearPart<kCount> near(const Vectors<kCount>& x) {
    const Vectors<kCount> half = x * (Gelu::kRootOfHalf / 2);
    const Vectors<kCount> square = half * half;
    return {near_distribution(half, square), where_far(square), half};
  }
  template <int kCount>
  [[gnu::always_inline]] static Vectors<kCount> far(const Vectors<kCount>& half) {
    return far_distribution(half);
  }
};

struct GeluDerivative {
  template <int kCount>
  [[gnu::always_inline]] static NearPart<kCount> near(const Vectors<kCount>& x) {
    const Vectors<kCount> half = x * (Gelu::kRootOfHalf / 2);
    const Vectors<kCount> square = half * half;
    const Vectors<kCount> density = times_exponential_of_half(x * (Gelu::kDensityAtZero / 2), x * x);
    return {near_distribution(half, square) + density, where_far(square), x};
  }
  template <int kCount>
  [[gnu::always_inline]] static Vectors<kCount> far(const Vectors<kCount>& x) {
    const Vectors<kCount> density = x * Gelu::kDensityAtZero * exponential_of_negative(x * x * -0.5F);
    return far_distribution(x * (Gelu::kRootOfHalf / 2)) + density;
  }
};

// So many vectors of the long chains near 0 fit into registers.
constexpr int kNearSideBySide = 3;

// The results of a block of inputs, in both parts.
class NearAndFar {
 public:
  static constexpr std::int64_t kFloats = 768;  // no power of two, so that arrays do not meet in one place of the cache

  // Asks for what follows these inputs, and for the places of other arrays that the results need.
  template <class Formula>
  [[gnu::always_inline]] void compute_near(const float* inputs, std::int64_t count,
                                           const std::same_as<const float*> auto... others) {
    far_count_ = 0;
    const auto step = [&]<int kCount>(std::int64_t begin, const Vectors<kCount>& x, __mmask16 mask) HOLDFAST_INLINED {
      for (int i = 0; i < kCount; ++i) {
        ask_ahead(inputs + begin + i * kVector);
        (ask(others + begin + i * kVector), ...);
      }
      const NearPart<kCount> part = Formula::near(x);
      store(part.results, kAllLanes, near_ + begin);
      for (int i = 0; i < kCount; ++i) {
        const __mmask16 lanes = part.is_far.of[i] & mask;
        is_far_[begin / kVector + i] = lanes;
        _mm512_storeu_ps(far_ + far_count_, _mm512_maskz_compress_ps(lanes, part.kept.of[i]));
        far_count_ += __builtin_popcount(lanes);
      }
    };
    for_vectors<kNearSideBySide>(inputs, 0, count, step);
  }

  template <class Formula>
  [[gnu::always_inline]] void compute_far() {
    for_vectors<kFewSideBySide>(far_, 0, far_count_,
                                [&](std::int64_t begin, const auto& x, __mmask16 mask)
                                    HOLDFAST_INLINED { store(Formula::far(x), mask, far_ + begin); });
  }

  // Calls finish(begin, results, mask) for each vector.
  template <class Finish>
  [[gnu::always_inline]] void finish_all(std::int64_t count, const Finish& finish) const {
    const float* far = far_;
    const auto finish_one = [&](std::int64_t begin, __mmask16 mask) HOLDFAST_INLINED {
      const __mmask16 lanes = is_far_[begin / kVector];
      finish(begin, _mm512_mask_expandloadu_ps(_mm512_load_ps(near_ + begin), lanes, far), mask);
      far += __builtin_popcount(lanes);
    };
    std::int64_t begin = 0;
    for (; begin + kVector <= count; begin += kVector) finish_one(begin, kAllLanes);
    if (begin < count) finish_one(begin, first_lanes(count - begin));
  }

 private:
  alignas(64) float near_[kFloats];
  alignas(64) float far_[kFloats + kVector];  // what is kept, then results; vectors are stored whole
  __mmask16 is_far_[kFloats / kVector];
  std::int64_t far_count_;
};

// Calls finish(begin, results, mask) for each vector of results. A block is finished after the next one's near part, so
// that nothing waits for its last far results, and what `finish` needs of other arrays is there.
template <class Formula, class Finish>
[[gnu::always_inline]] inline void near_and_far(const float* input, std::int64_t count, const Finish& finish,
                                                const std::same_as<const float*> auto... others) {
  constexpr std::int64_t kBlock = NearAndFar::kFloats;
  const auto size_from = [=](std::int64_t block) { return count - block < kBlock ? count - block : kBlock; };
  NearAndFar blocks[2];
  int current = 0;
  const auto finish_block = [&](const NearAndFar& results, std::int64_t block) HOLDFAST_INLINED {
    results.finish_all(size_from(block), [&](std::int64_t begin, Floats16 values, __mmask16 mask)
                                             HOLDFAST_INLINED { finish(block + begin, values, mask); });
  };
  std::int64_t block = 0;
  for (; block < count; block += kBlock, current ^= 1) {
    blocks[current].compute_near<Formula>(input + block, size_from(block), (others + block)...);
    if (block > 0) finish_block(blocks[current ^ 1], block - kBlock);
    blocks[current].compute_far<Formula>();
  }
  if (block > 0) finish_block(blocks[current ^ 1], block - kBlock);
}

inline void values_in_vectors(Gelu, const float* input, float* output, std::int64_t count) {
  const auto finish = [=](std::int64_t begin, Floats16 factors, __mmask16 mask) HOLDFAST_INLINED {
    const Floats16 inputs = _mm512_maskz_loadu_ps(mask, input + begin);
    _mm512_mask_storeu_ps(output + begin, mask, inputs * factors);
  };
  near_and_far<GeluFactor>(input, count, finish, static_cast<const float*>(output));
}

inline void derivatives_in_vectors(Gelu, const float* input, float* result, std::int64_t count) {
  const auto finish = [=](std::int64_t begin, Floats16 values, __mmask16 mask)
                          HOLDFAST_INLINED { _mm512_mask_storeu_ps(result + begin, mask, values); };
  near_and_far<GeluDerivative>(input, count, finish, static_cast<const float*>(result));
}

// Times the gradient of the output.
inline void derivatives_in_vectors(Gelu, const float* input, const float* output_gradient, float* result,
                                   std::int64_t count) {
  const auto finish = [=](std::int64_t begin, Floats16 values, __mmask16 mask) HOLDFAST_INLINED {
    const Floats16 gradients = _mm512_maskz_loadu_ps(mask, output_gradient + begin);
    _mm512_mask_storeu_ps(result + begin, mask, gradients * values);
  };
  near_and_far<GeluDerivative>(input, count, finish, static_cast<const float*>(result), output_gradient);
}

}  // namespace
}  // namespace holdfast::compute

#endif
