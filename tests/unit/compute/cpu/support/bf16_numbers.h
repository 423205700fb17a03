#pragma once

// Factors of products in bf16, and how exact a sum of products in f32 is.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "compute/arithmetic/bfloat16.h"

namespace holdfast::compute {

inline float rounded(float value) {
  return std::bit_cast<float>(widen_bfloat16(round_to_bfloat16(std::bit_cast<std::uint32_t>(value))));
}

inline std::vector<float> rounded(std::vector<float> values) {
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
