#pragma once

// Numbers for products in bf16, and how exact a sum of products in f32 is.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "compute/arithmetic/bfloat16.h"
#include "holdfast/core/random.h"

namespace holdfast::compute {

using Floats = std::vector<float>;

// Uniform in [-1, 1); equal numbers give equal values.
inline Floats random_floats(std::int64_t count, std::uint64_t number) {
  Random random(number, Purpose::user, 0, 0);
  Floats floats(static_cast<std::size_t>(count));
  for (float& value : floats) value = 2 * random.uniform() - 1;
  return floats;
}

inline float rounded(float value) {
  return std::bit_cast<float>(widen_bfloat16(round_to_bfloat16(std::bit_cast<std::uint32_t>(value))));
}

inline Floats rounded(Floats values) {
  for (float& value : values) value = rounded(value);
  return values;
}

// A sum of products in double, with what bounds the errors of the same sum in f32.
struct ExactSum {
  double sum = 0;
  double magnitude = 0;
  std::int64_t terms = 1;

  void add(float a, float b) {
    sum += static_cast<double>(a) * b;
    magnitude += std::abs(static_cast<double>(a) * b);
    ++terms;
  }

  // Products of bf16 numbers are exact in f32, and each addition rounds once, in any order.
  void expect_near(float value) const {
    EXPECT_NEAR(value, sum, static_cast<double>(terms) * 0x1p-24 * magnitude + 1e-30);
  }
};

}  // namespace holdfast::compute
