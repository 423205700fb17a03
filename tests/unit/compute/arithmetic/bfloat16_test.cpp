// Rounding to bfloat16, compared with the definition of the format for every result.

#include "compute/arithmetic/bfloat16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace holdfast::compute {
namespace {

// The value of a bfloat16, by the definition of its fields. The largest exponent counts as an ordinary one, so that
// infinity is the number after the largest finite one.
double value_of(std::uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 7 & 0xFF);
  const double mantissa = bits & 0x7F;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -126 - 7) : std::ldexp(128 + mantissa, exponent - 127 - 7);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// The nearer of the two neighbours of the number; the even one if both are equally near.
std::uint16_t nearest(float number) {
  const std::uint32_t below = std::bit_cast<std::uint32_t>(number) >> 16;  // in magnitude
  const double from_below = std::abs(number - value_of(below));
  const double from_above = std::abs(number - value_of(below + 1));
  const bool takes_below = from_below < from_above || (from_below == from_above && below % 2 == 0);
  return static_cast<std::uint16_t>(takes_below ? below : below + 1);
}

// Covers every sign, exponent and mantissa of the result.
template <class Check>
void for_each_upper_half(const Check& check) {
  for (std::uint32_t upper = 0; upper <= 0xFFFF; ++upper) {
    for (const std::uint32_t lower : {0x0000, 0x0001, 0x7FFF, 0x8000, 0x8001, 0xFFFF}) check(upper << 16 | lower);
  }
}

TEST(Bfloat16, IsTheNearest) {
  std::int64_t wrong = 0;
  for_each_upper_half([&](std::uint32_t bits) {
    const auto number = std::bit_cast<float>(bits);
    if (!std::isfinite(number) || round_to_bfloat16(bits) == nearest(number)) return;
    if (wrong++ == 0) ADD_FAILURE() << "the first is " << std::hexfloat << number;
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Bfloat16, IsNotANumberIfTheF32IsNotANumber) {
  std::int64_t wrong = 0;
  for_each_upper_half([&](std::uint32_t bits) {
    if (!std::isnan(std::bit_cast<float>(bits))) return;
    const std::uint32_t widened = widen_bfloat16(round_to_bfloat16(bits));
    if (!std::isnan(std::bit_cast<float>(widened)) || widened >> 31 != bits >> 31) ++wrong;
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Bfloat16, KeepsWhatItCanHold) {
  for (std::uint32_t upper = 0; upper <= 0xFFFF; ++upper) {
    const auto bits = static_cast<std::uint16_t>(upper);
    if (std::isnan(std::bit_cast<float>(widen_bfloat16(bits)))) continue;
    ASSERT_EQ(round_to_bfloat16(widen_bfloat16(bits)), bits) << upper;
  }
}

TEST(Bfloat16, HasTheSpecialValues) {
  const auto rounded = [](float value) { return round_to_bfloat16(std::bit_cast<std::uint32_t>(value)); };

  EXPECT_EQ(rounded(0.0F), 0x0000);
  EXPECT_EQ(rounded(-0.0F), 0x8000);
  EXPECT_EQ(rounded(1.0F), 0x3F80);
  EXPECT_EQ(rounded(1.00390625F), 0x3F80) << "half way to the next, which is odd";
  EXPECT_EQ(rounded(1.01171875F), 0x3F82) << "half way from an odd one";
  EXPECT_EQ(rounded(std::numeric_limits<float>::infinity()), 0x7F80);
  EXPECT_EQ(rounded(-std::numeric_limits<float>::infinity()), 0xFF80);
  EXPECT_EQ(rounded(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(rounded(0x1.FEFFFEp127F), 0x7F7F) << "just below half way to infinity";
  EXPECT_EQ(rounded(std::numeric_limits<float>::denorm_min()), 0x0000);
  EXPECT_EQ(rounded(std::numeric_limits<float>::min()), 0x0080);
}

}  // namespace
}  // namespace holdfast::compute
