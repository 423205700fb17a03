#pragma once

// Sums in the order of lanes.h, in named vectors: compilers that make them of loops keep what lies between functions in
// memory, and combine the lanes there.

#ifdef __SSE2__
#include <immintrin.h>
#endif

#include <cstdint>

#include "compute/arithmetic/lanes.h"
#include "compute/cpu/kernels/loop_hints.h"

namespace holdfast::compute {
namespace {

constexpr int kGroupVectors = static_cast<int>(kLanes) / kHostVectorFloats;  // of a group
typedef float LaneFloats __attribute__((vector_size(kHostVectorFloats * sizeof(float))));
typedef float HalfOfFloats __attribute__((vector_size(kHostVectorFloats / 2 * sizeof(float))));
typedef double LaneDoubles __attribute__((vector_size(kHostVectorFloats / 2 * sizeof(double))));

// The lanes of a group, and their sums.
struct GroupOfLanes {
  LaneFloats of[kGroupVectors];
};
struct LaneSums {
  LaneDoubles low[kGroupVectors];
  LaneDoubles high[kGroupVectors];
};

// Arrays may begin at any float, so vectors are copied and not dereferenced.
[[gnu::always_inline]] inline void load_group(const float* from, GroupOfLanes& to) {
  for (int i = 0; i < kGroupVectors; ++i) __builtin_memcpy(&to.of[i], from + i * kHostVectorFloats, sizeof(LaneFloats));
}

[[gnu::always_inline]] inline void store_group(const GroupOfLanes& from, float* to) {
  for (int i = 0; i < kGroupVectors; ++i) __builtin_memcpy(to + i * kHostVectorFloats, &from.of[i], sizeof(LaneFloats));
}

// One number in all lanes. In whole vectors: a load waits for all of the stores that it covers.
[[gnu::always_inline]] inline void repeat(float number, float* to) {
  // Zeros plus the number would be +0 for -0, and of one lane after the other g++ 12 makes many instructions.
#if defined(__AVX512F__)
  const LaneFloats vector = _mm512_set1_ps(number);
#elif defined(__AVX2__)
  const LaneFloats vector = _mm256_set1_ps(number);
#else
  const LaneFloats vector = {number, number, number, number};
#endif
  for (int i = 0; i < kGroupVectors; ++i) __builtin_memcpy(to + i * kHostVectorFloats, &vector, sizeof(vector));
}

// Vector by vector: g++ 12 makes a loop of `= {}` that takes longer than a short row.
[[gnu::always_inline]] inline void clear(LaneSums& lanes) {
  for (LaneDoubles& vector : lanes.low) vector = LaneDoubles{};
  for (LaneDoubles& vector : lanes.high) vector = LaneDoubles{};
}

#ifdef __SSE2__
// Named instructions: g++ 12 makes several of a conversion that is one. In its header, the plain one of AVX-512 has an
// uninitialised operand.
[[gnu::always_inline]] inline LaneDoubles as_doubles(const HalfOfFloats& half) {
#if defined(__AVX512F__)
  return _mm512_maskz_cvtps_pd(0xFF, half);
#elif defined(__AVX2__)
  return _mm256_cvtps_pd(half);
#else
  return _mm_cvtps_pd(_mm_loadl_pi(_mm_setzero_ps(), reinterpret_cast<const __m64*>(&half)));
#endif
}
#else
[[gnu::always_inline]] inline LaneDoubles as_doubles(const HalfOfFloats& half) {
  return __builtin_convertvector(half, LaneDoubles);
}
#endif

// Halves, because a vector holds half as many doubles as floats.
[[gnu::always_inline]] inline void add_group(const GroupOfLanes& values, LaneSums& lanes) {
  for (int i = 0; i < kGroupVectors; ++i) {
    HalfOfFloats halves[2];
    __builtin_memcpy(halves, &values.of[i], sizeof(halves));
    lanes.low[i] += as_doubles(halves[0]);
    lanes.high[i] += as_doubles(halves[1]);
  }
}

[[gnu::always_inline]] inline void load_lanes(const double* from, LaneSums& to) {
  for (int i = 0; i < kGroupVectors; ++i) {
    __builtin_memcpy(&to.low[i], from + i * kHostVectorFloats, sizeof(LaneDoubles));
    __builtin_memcpy(&to.high[i], from + i * kHostVectorFloats + kHostVectorFloats / 2, sizeof(LaneDoubles));
  }
}

[[gnu::always_inline]] inline void store_lanes(const LaneSums& from, double* to) {
  for (int i = 0; i < kGroupVectors; ++i) {
    __builtin_memcpy(to + i * kHostVectorFloats, &from.low[i], sizeof(LaneDoubles));
    __builtin_memcpy(to + i * kHostVectorFloats + kHostVectorFloats / 2, &from.high[i], sizeof(LaneDoubles));
  }
}

template <int kCount>
struct Doubles {
  typedef double Vector __attribute__((vector_size(kCount * sizeof(double))));
};

// Each half of a vector is added to the other, until one number is left.
template <int kCount>
[[gnu::always_inline]] inline double sum_of_halves(const void* vector) {
  using Half = typename Doubles<kCount / 2>::Vector;
  Half halves[2];
  __builtin_memcpy(halves, vector, sizeof(halves));
  const Half sum = halves[0] + halves[1];
  if constexpr (kCount == 4) {
    return sum[0] + sum[1];
  } else {
    return sum_of_halves<kCount / 2>(&sum);
  }
}

// As combine_pairs().
[[gnu::always_inline]] inline double sum_of_lanes(const LaneSums& lanes) {
  LaneDoubles vectors[2 * kGroupVectors];
  for (int i = 0; i < kGroupVectors; ++i) {
    vectors[2 * i] = lanes.low[i];
    vectors[2 * i + 1] = lanes.high[i];
  }
  for (int half = kGroupVectors; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) vectors[i] += vectors[i + half];
  }
  if constexpr (kHostVectorFloats == 4) {
    return vectors[0][0] + vectors[0][1];
  } else {
    return sum_of_halves<kHostVectorFloats / 2>(&vectors[0]);
  }
}

// Adds up `count` numbers: group(i, values) gives kLanes of them from number i on, and number(i) each of the last ones.
template <class Group, class Number>
[[gnu::always_inline]] inline double sum_of_groups(std::int64_t count, const Group& group, const Number& number) {
  LaneSums lanes;
  clear(lanes);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    GroupOfLanes values;
    group(i, values);
    add_group(values, lanes);
  }
  if (i < count) {
    alignas(64) double sums[kLanes];
    store_lanes(lanes, sums);
    for (std::int64_t lane = 0; i + lane < count; ++lane) sums[lane] += number(i + lane);
    load_lanes(sums, lanes);
  }
  return sum_of_lanes(lanes);
}

[[gnu::always_inline]] inline double sum_of_numbers(const float* row, std::int64_t count) {
  return sum_of_groups(
      count, [=](std::int64_t i, GroupOfLanes& values) { load_group(row + i, values); },
      [=](std::int64_t i) { return row[i]; });
}

// Products are rounded to floats, as those of an array are.
[[gnu::always_inline]] inline double sum_of_products(const float* a, const float* b, std::int64_t count) {
  const auto products = [=](std::int64_t i, GroupOfLanes& values) {
    GroupOfLanes factors;
    load_group(a + i, values);
    load_group(b + i, factors);
    for (int k = 0; k < kGroupVectors; ++k) values.of[k] *= factors.of[k];
  };
  return sum_of_groups(count, products, [=](std::int64_t i) { return a[i] * b[i]; });
}

}  // namespace
}  // namespace holdfast::compute
