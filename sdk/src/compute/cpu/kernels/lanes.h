#pragma once

// The order of our sums: element i is added to lane i % 16, in order, and the lanes are then added in pairs: 0 and 8, 1
// and 9, and so on; then 0 and 4. It is a function of the length alone, so an instruction set may add as many lanes at
// once as it has. Sums are in double.

#include <cstdint>

#include "core/host_device.h"

namespace holdfast::compute {
namespace {

constexpr std::int64_t kLanes = 16;

[[gnu::always_inline]] inline double sum_of_lanes(double (&lanes)[kLanes]) {
  for (std::int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::int64_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

// The sum of value_of(i) for i from 0 to count - 1.
template <class Value>
[[gnu::always_inline]] inline double sum_in_lanes(std::int64_t count, const Value& value_of) {
  double lanes[kLanes] = {};
  std::int64_t first = 0;
  for (; first + kLanes <= count; first += kLanes) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += value_of(first + lane);
  }
  for (std::int64_t lane = 0; lane < count - first; ++lane) lanes[lane] += value_of(first + lane);
  return sum_of_lanes(lanes);
}

}  // namespace
}  // namespace holdfast::compute
