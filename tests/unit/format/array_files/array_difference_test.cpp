// Differences of every element type, with the cases in which bits and numbers disagree: zeros, NaN, infinity.

#include "holdfast/format/array_difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "support/special_floats.h"
#include "unit/format/support/array_files.h"

namespace holdfast::format {
namespace {

using testing::thrown_by;

template <typename Number>
ArrayDifference difference(DType dtype, const std::vector<Number>& a, const std::vector<Number>& b,
                           const std::optional<double>& tolerance = {}) {
  return difference_of(dtype, std::as_bytes(std::span(a)), std::as_bytes(std::span(b)), tolerance);
}

ArrayDifference difference(const std::vector<float>& a, const std::vector<float>& b,
                           const std::optional<double>& tolerance = {}) {
  return difference(DType::f32, a, b, tolerance);
}

TEST(ArrayDifference, CountsAndMeasuresWhatDiffers) {
  const ArrayDifference found = difference({1, 2, -4, 0}, {1, 3, 4, 0});

  EXPECT_EQ(found.elements, 4U);
  EXPECT_EQ(found.differing, 2U);
  EXPECT_EQ(found.max_absolute, 8);
  EXPECT_EQ(found.max_relative, 2);
}

TEST(ArrayDifference, IsZeroBetweenEqualBits) {
  const std::vector<float> values = {1, kNaN, kInfinity, -0.0F};

  const ArrayDifference found = difference(values, values);

  EXPECT_EQ(found.differing, 0U);
  EXPECT_EQ(found.max_absolute, 0);
  EXPECT_EQ(found.nans_in_a, 1U);
  EXPECT_EQ(found.nans_in_b, 1U);
}

TEST(ArrayDifference, CountsDifferentBitsOfEqualNumbers) {
  const ArrayDifference found = difference({0.0F, kNaN}, {-0.0F, -kNaN});

  EXPECT_EQ(found.differing, 2U);
  EXPECT_EQ(found.max_absolute, 0);
  EXPECT_EQ(found.max_relative, 0);
}

TEST(ArrayDifference, TreatsNumbersWithinTheToleranceAsEqual) {
  EXPECT_EQ(difference({1, 2}, {1.5F, 3}, 0.5).differing, 1U);
  EXPECT_EQ(difference({1, 2}, {1.5F, 3}, 0.5).max_absolute, 1);
  EXPECT_EQ(difference({0.0F, kNaN}, {-0.0F, -kNaN}, 0.0).differing, 0U);
}

TEST(ArrayDifference, CountsElementsThatAreNaNOnOneSideOnly) {
  const ArrayDifference found = difference({kNaN, 1, kNaN}, {1, kNaN, kNaN}, 1e9);

  EXPECT_EQ(found.differing, 2U);
  EXPECT_EQ(found.nans_in_a, 2U);
  EXPECT_EQ(found.nans_in_b, 2U);
}

TEST(ArrayDifference, IsInfiniteBetweenInfinityAndANumber) {
  const ArrayDifference found = difference({kInfinity, kInfinity}, {1, -kInfinity}, 1e30);

  EXPECT_EQ(found.differing, 2U);
  EXPECT_EQ(found.max_absolute, kInfinity);
  EXPECT_EQ(found.max_relative, kInfinity);
}

TEST(ArrayDifference, IsRelativelyTwoBetweenTheLargestNumbersOfBothSigns) {
  const double largest = std::numeric_limits<double>::max();

  EXPECT_EQ(difference<double>(DType::f64, {largest}, {-largest}).max_relative, 2);
}

TEST(ArrayDifference, IsExactForLargeIntegers) {
  constexpr std::uint64_t kLarge = std::uint64_t{1} << 63;
  constexpr auto kLowest = std::numeric_limits<std::int64_t>::min();

  EXPECT_EQ(difference<std::uint64_t>(DType::u64, {kLarge + 1}, {kLarge}).max_absolute, 1);
  EXPECT_EQ(difference<std::int64_t>(DType::i64, {kLowest}, {kLowest + 3}).max_absolute, 3);
  EXPECT_EQ(difference<std::int64_t>(DType::i64, {kLowest}, {kLowest + 3}, 2.0).differing, 1U);
  EXPECT_EQ(difference<std::int64_t>(DType::i64, {-1}, {1}).max_absolute, 2);
}

TEST(ArrayDifference, IsRightForBothTypesOf16Bits) {
  // 1 and 1.5 in each of the two types of 16 bits.
  EXPECT_EQ(difference<std::uint16_t>(DType::f16, {0x3C00}, {0x3E00}).max_absolute, 0.5);
  EXPECT_EQ(difference<std::uint16_t>(DType::bf16, {0x3F80}, {0x3FC0}).max_absolute, 0.5);
  // The smallest number of f16, infinity and a NaN.
  EXPECT_EQ(difference<std::uint16_t>(DType::f16, {0x0001}, {0x8000}).max_absolute, std::ldexp(1.0, -24));
  EXPECT_EQ(difference<std::uint16_t>(DType::f16, {0x7C00}, {0x0000}).max_absolute, kInfinity);
  EXPECT_EQ(difference<std::uint16_t>(DType::f16, {0x7E01}, {0x0000}).nans_in_a, 1U);
}

TEST(ArrayDifference, IsZeroBetweenEmptyArrays) {
  const ArrayDifference found = difference({}, {});

  EXPECT_EQ(found.elements, 0U);
  EXPECT_EQ(found.differing, 0U);
}

TEST(ArrayDifference, IsRefusedForDifferentSizes) {
  EXPECT_EQ(thrown_by([] { difference({1}, {1, 2}); }).code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace holdfast::format
