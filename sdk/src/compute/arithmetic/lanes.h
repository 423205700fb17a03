#pragma once

// The order of our sums over a row, for host and device: element i is added to lane i % 16, in order, and the lanes are
// then added in pairs: 0 and 8, 1 and 9, and so on; then 0 and 4. It is a function of the length alone, so an
// instruction set may add as many lanes at once as it has. Sums are in double. docs/decisions/processor-loops.md

#include <cstdint>

#include "core/host_device.h"

// Lets the compiler make vectors of the loop that follows, whose steps do not depend on each other.
#ifdef _OPENMP
#define HOLDFAST_VECTOR_LOOP _Pragma("omp simd")
#else
#define HOLDFAST_VECTOR_LOOP
#endif
// Unrolls the loop that follows on a device. Its lanes are registers then, and would lie on a stack otherwise.
#ifdef __CUDA_ARCH__
#define HOLDFAST_UNROLLED_ON_DEVICE _Pragma("unroll")
#else
#define HOLDFAST_UNROLLED_ON_DEVICE
#endif

namespace holdfast::compute {

inline constexpr std::int64_t kLanes = 16;

// Lane 0 with lane kHalf, and so on, until one is left.
template <int kHalf, class Number, class Combine>
HOLDFAST_HOST_DEVICE inline void combine_pairs(Number* lanes, const Combine& combine) {
  HOLDFAST_VECTOR_LOOP
  HOLDFAST_UNROLLED_ON_DEVICE
  for (int lane = 0; lane < kHalf; ++lane) lanes[lane] = combine(lanes[lane], lanes[lane + kHalf]);
  if constexpr (kHalf > 1) combine_pairs<kHalf / 2>(lanes, combine);
}

// Combines value_of(i) for i from 0 to count - 1 in that order. A lane begins with `first`.
template <class Number, class Value, class Combine>
HOLDFAST_HOST_DEVICE inline Number combined_in_lanes(std::int64_t count, Number first, const Value& value_of,
                                                     const Combine& combine) {
  Number lanes[kLanes];
  HOLDFAST_UNROLLED_ON_DEVICE
  for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = first;
  std::int64_t begin = 0;
  for (; begin + kLanes <= count; begin += kLanes) {
    HOLDFAST_VECTOR_LOOP
    HOLDFAST_UNROLLED_ON_DEVICE
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = combine(lanes[lane], value_of(begin + lane));
  }
  HOLDFAST_UNROLLED_ON_DEVICE
  for (std::int64_t lane = 0; lane < kLanes; ++lane) {
    if (begin + lane < count) lanes[lane] = combine(lanes[lane], value_of(begin + lane));
  }
  combine_pairs<kLanes / 2>(lanes, combine);
  return lanes[0];
}

template <class Value>
HOLDFAST_HOST_DEVICE inline double sum_of_row(std::int64_t count, const Value& value_of) {
  return combined_in_lanes(count, 0.0, value_of, [](double sum, double value) { return sum + value; });
}

// A NaN stays a NaN, so that it is found.
HOLDFAST_HOST_DEVICE inline float larger_or_nan(float largest, float value) {
  // Without a branch: || would be one.
  return ((value > largest) | (value != value)) != 0 ? value : largest;
}

// The largest of the row, or a NaN of it; minus infinity for an empty one.
template <class Value>
HOLDFAST_HOST_DEVICE inline float largest_of_row(std::int64_t count, const Value& value_of) {
  return combined_in_lanes(count, -__builtin_inff(), value_of,
                           [](float largest, float value) { return larger_or_nan(largest, value); });
}

}  // namespace holdfast::compute
