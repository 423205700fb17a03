// Statistics of small arrays whose values can be computed by hand, and of numbers at the ends of the range.

#include "holdfast/format/array_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "support/special_floats.h"

namespace holdfast::format {
namespace {

template <typename Number>
ArrayStatistics statistics(DType dtype, const std::vector<Number>& values) {
  return statistics_of(dtype, std::as_bytes(std::span(values)));
}

ArrayStatistics statistics(const std::vector<float>& values) {
  return statistics(DType::f32, values);
}

std::uint64_t sum_of(const ArrayStatistics& found) {
  return std::accumulate(found.histogram.begin(), found.histogram.end(), std::uint64_t{0});
}

TEST(ArrayStatistics, DescribeTheNumbers) {
  const ArrayStatistics found = statistics({3, -1, 0, 2, 0, 2});

  EXPECT_EQ(found.elements, 6U);
  EXPECT_EQ(found.zeros, 2U);
  EXPECT_EQ(found.minimum, -1);
  EXPECT_EQ(found.maximum, 3);
  EXPECT_EQ(found.mean, 1);
  // The squared distances from 1 are 4, 4, 1, 1, 1, 1; the squares are 9, 1, 0, 4, 0, 4. Both are scaled by powers
  // of two, so only the roots round.
  EXPECT_DOUBLE_EQ(found.deviation, std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(found.norm, std::sqrt(18.0));
}

TEST(ArrayStatistics, CountNumbersThatAreNotFiniteAndLeaveThemOut) {
  const ArrayStatistics found = statistics({kNaN, 1, kInfinity, -kInfinity, 3, kNaN});

  EXPECT_EQ(found.nans, 2U);
  EXPECT_EQ(found.infinities, 2U);
  EXPECT_EQ(found.finite(), 2U);
  EXPECT_EQ(found.minimum, 1);
  EXPECT_EQ(found.maximum, 3);
  EXPECT_EQ(found.mean, 2);
  EXPECT_EQ(sum_of(found), 2U);
}

TEST(ArrayStatistics, AreZeroIfNoNumberIsFinite) {
  for (const std::vector<float>& values : std::vector<std::vector<float>>{{}, {kNaN, kInfinity}}) {
    const ArrayStatistics found = statistics(values);

    EXPECT_EQ(found.elements, values.size());
    EXPECT_EQ(found.finite(), 0U);
    EXPECT_EQ(found.minimum, 0);
    EXPECT_EQ(found.maximum, 0);
    EXPECT_EQ(found.norm, 0);
    EXPECT_EQ(sum_of(found), 0U);
  }
}

TEST(ArrayStatistics, SpreadTheNumbersOverTheHistogram) {
  std::vector<float> values;
  for (int i = 0; i <= 16; ++i) values.push_back(static_cast<float>(i));

  const ArrayStatistics found = statistics(values);

  // One number is in each part, and the largest is in the last part too.
  std::array<std::uint64_t, ArrayStatistics::kBins> expected{};
  expected.fill(1);
  expected.back() = 2;
  EXPECT_EQ(found.histogram, expected);
}

TEST(ArrayStatistics, CountOneRepeatedValueInTheFirstPart) {
  const ArrayStatistics found = statistics({7, 7, 7});

  EXPECT_EQ(found.histogram.front(), 3U);
  EXPECT_EQ(sum_of(found), 3U);
  EXPECT_EQ(found.deviation, 0);
}

TEST(ArrayStatistics, DoNotOverflow) {
  const double largest = std::numeric_limits<double>::max();

  const ArrayStatistics found = statistics<double>(DType::f64, {largest, -largest});

  EXPECT_EQ(found.mean, 0);
  EXPECT_EQ(found.deviation, largest);
  EXPECT_EQ(found.histogram.front(), 1U);
  EXPECT_EQ(found.histogram.back(), 1U);
}

TEST(ArrayStatistics, DoNotUnderflow) {
  const double smallest = std::numeric_limits<double>::denorm_min();

  const ArrayStatistics found = statistics<double>(DType::f64, {smallest, smallest, smallest, smallest});

  EXPECT_EQ(found.norm, 2 * smallest);
  EXPECT_EQ(found.mean, smallest);
}

TEST(ArrayStatistics, ReadEveryType) {
  // 1 and 3 in each type.
  EXPECT_EQ(statistics<double>(DType::f64, {1, 3}).mean, 2);
  EXPECT_EQ(statistics<std::uint16_t>(DType::f16, {0x3C00, 0x4200}).mean, 2);
  EXPECT_EQ(statistics<std::uint16_t>(DType::bf16, {0x3F80, 0x4040}).mean, 2);
  EXPECT_EQ(statistics<std::int8_t>(DType::i8, {1, 3}).mean, 2);
  EXPECT_EQ(statistics<std::int16_t>(DType::i16, {1, 3}).mean, 2);
  EXPECT_EQ(statistics<std::int32_t>(DType::i32, {1, 3}).mean, 2);
  EXPECT_EQ(statistics<std::int64_t>(DType::i64, {1, 3}).mean, 2);
  EXPECT_EQ(statistics<std::uint8_t>(DType::u8, {1, 3}).mean, 2);
  EXPECT_EQ(statistics<std::uint16_t>(DType::u16, {1, 3}).mean, 2);
  EXPECT_EQ(statistics<std::uint32_t>(DType::u32, {1, 3}).mean, 2);
  EXPECT_EQ(statistics<std::uint64_t>(DType::u64, {1, 3}).mean, 2);
  EXPECT_EQ(statistics<std::uint8_t>(DType::boolean, {0, 1}).mean, 0.5);
}

TEST(ArrayStatistics, KeepTheSign) {
  EXPECT_EQ(statistics<std::int8_t>(DType::i8, {-128}).minimum, -128);
  EXPECT_EQ(statistics<std::uint8_t>(DType::u8, {128}).minimum, 128);
}

TEST(StatisticsBuilder, GivesTheSameBitsForAnyPieces) {
  std::vector<float> values;
  for (int i = 0; i < 1000; ++i) values.push_back(static_cast<float>((i * 37) % 101) / 7.0F - 3.0F);
  values[10] = std::numeric_limits<float>::quiet_NaN();
  values[990] = -std::numeric_limits<float>::infinity();
  const auto bytes = std::as_bytes(std::span(values));
  const ArrayStatistics whole = statistics_of(DType::f32, bytes);

  StatisticsBuilder builder(DType::f32);
  for (int pass = 0; pass < StatisticsBuilder::kPasses; ++pass) {
    const std::size_t elements = 7 + 100 * static_cast<std::size_t>(pass);
    for (std::size_t at = 0; at < bytes.size(); at += 4 * elements) {
      builder.add(bytes.subspan(at, std::min(4 * elements, bytes.size() - at)));
    }
    builder.end_pass();
  }

  const ArrayStatistics& pieces = builder.result();
  EXPECT_EQ(pieces.elements, 1000U);
  EXPECT_EQ(pieces.nans, 1U);
  EXPECT_EQ(pieces.infinities, 1U);
  EXPECT_EQ(pieces.zeros, whole.zeros);
  EXPECT_EQ(pieces.minimum, whole.minimum);
  EXPECT_EQ(pieces.maximum, whole.maximum);
  EXPECT_EQ(pieces.mean, whole.mean);
  EXPECT_EQ(pieces.deviation, whole.deviation);
  EXPECT_EQ(pieces.norm, whole.norm);
  EXPECT_EQ(pieces.histogram, whole.histogram);
}

}  // namespace
}  // namespace holdfast::format
