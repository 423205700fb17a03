// Our exponential functions against those of the C library in double. Floats of all sizes are tried, in equal steps of
// their bits.

#include "compute/arithmetic/exponential.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

namespace holdfast::compute {
namespace {

// A prime, so that the low bits of the floats differ, too.
constexpr std::uint64_t kStepOfBits = 10'007;

// The distance of `actual` from `expected`, in steps of the floats near it. 0 if both are the same infinity.
double units_in_the_last_place(float actual, double expected) {
  if (static_cast<float>(expected) == actual) return 0;
  int exponent = 0;
  std::frexp(expected, &exponent);
  const double unit = std::ldexp(1.0, std::max(exponent - 24, -149));
  return std::abs(actual - expected) / unit;
}

struct Range {
  float lowest;
  float highest;
};

void expect_accuracy(const std::string& name, const std::function<float(float)>& function,
                     const std::function<double(double)>& reference, Range range, double bound) {
  double worst = 0;
  float worst_at = 0;
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += kStepOfBits) {
    const float x = float_of_bits(static_cast<std::uint32_t>(bits));
    if (!(x >= range.lowest && x <= range.highest)) continue;
    const double error = units_in_the_last_place(function(x), reference(x));
    // A NaN is an error, too.
    if (error <= worst) continue;
    worst = error;
    worst_at = x;
  }
  EXPECT_LE(worst, bound) << name << " of " << worst_at;
}

constexpr float kLargestOfFloats = 3.4e38F;
constexpr float kSmallestOfFloats = 0x1p-149F;

TEST(Exponential, IsWithinTheBoundsThatItsHeaderStates) {
  expect_accuracy(
      "e^x", exponential, [](double x) { return std::exp(x); }, {-200, 200}, 1.1);
  expect_accuracy(
      "log", logarithm, [](double x) { return std::log(x); }, {kSmallestOfFloats, kLargestOfFloats}, 0.8);
  expect_accuracy(
      "log(1 + x)", logarithm_of_one_plus, [](double x) { return std::log1p(x); }, {0, kLargestOfFloats}, 1.2);
  expect_accuracy(
      "tanh", hyperbolic_tangent, [](double x) { return std::tanh(x); }, {-kLargestOfFloats, kLargestOfFloats}, 1.4);
  expect_accuracy(
      "erf", error_function, [](double x) { return std::erf(x); }, {-kLargestOfFloats, kLargestOfFloats}, 1.4);
}

TEST(Exponential, IsWithinTheBoundThatItsHeaderStatesForAnyBase) {
  for (const float exponent : {2.0F, 3.0F, 0.5F, -1.0F, -2.5F, 7.3F, 0.1F, 30.0F}) {
    expect_accuracy(
        "power", [exponent](float base) { return power(base, exponent); },
        [exponent](double base) { return std::pow(base, static_cast<double>(exponent)); }, {0, kLargestOfFloats}, 0.8);
  }
}

TEST(Exponential, PowersHaveTheSpecialCasesOfTheLibrary) {
  const float infinity = kInfiniteFloat;
  const float values[] = {0.0F,     -0.0F,     1.0F, -1.0F,  2.0F,    -2.0F,   0.5F,    -0.5F, 3.0F,          -3.0F,
                          infinity, -infinity, NAN,  1e-40F, -1e-40F, 0x1p24F, 0x1p25F, 1e38F, 16'777'215.0F, -2.5F};
  for (const float base : values) {
    for (const float exponent : values) {
      const float actual = power(base, exponent);
      const double expected = std::pow(static_cast<double>(base), static_cast<double>(exponent));

      EXPECT_EQ(std::isnan(actual), std::isnan(expected)) << base << " to the power of " << exponent;
      if (std::isnan(expected)) continue;
      EXPECT_LE(units_in_the_last_place(actual, expected), 0.8) << base << " to the power of " << exponent;
      EXPECT_EQ(std::signbit(actual), std::signbit(expected)) << base << " to the power of " << exponent;
    }
  }
}

TEST(Exponential, EndsWhereFloatsEnd) {
  EXPECT_EQ(exponential(kInfiniteFloat), kInfiniteFloat);
  EXPECT_EQ(exponential(-kInfiniteFloat), 0.0F);
  EXPECT_EQ(exponential(-0.0F), 1.0F);
  EXPECT_EQ(logarithm(0), -kInfiniteFloat);
  EXPECT_EQ(logarithm(kInfiniteFloat), kInfiniteFloat);
  EXPECT_TRUE(std::isnan(logarithm(-1)));
  EXPECT_EQ(logarithm_of_one_plus(kInfiniteFloat), kInfiniteFloat);
  EXPECT_EQ(hyperbolic_tangent(-kInfiniteFloat), -1.0F);
  EXPECT_EQ(error_function(-kInfiniteFloat), -1.0F);
  EXPECT_TRUE(std::signbit(hyperbolic_tangent(-0.0F)));
  EXPECT_TRUE(std::signbit(error_function(-0.0F)));
}

// The forms for some arguments alone, compared bit by bit with the one for all.
void expect_same_bits(const std::function<float(float)>& actual, const std::function<float(float)>& expected,
                      Range range) {
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += kStepOfBits) {
    const float x = float_of_bits(static_cast<std::uint32_t>(bits));
    if (!(x >= range.lowest && x <= range.highest)) continue;
    ASSERT_EQ(bits_of(actual(x)), bits_of(expected(x))) << x;
  }
}

TEST(Exponential, GivesTheSameBitsInItsShorterForms) {
  expect_same_bits(exponential_near<0>, exponential, {-87, 88});
  expect_same_bits(exponential_near<2>, exponential, {-80, 89});
  expect_same_bits(exponential_of_negative, exponential, {-kInfiniteFloat, 0});
  expect_same_bits(one_plus_exponential, [](float x) { return 1.0F + exponential(x); },
                   {-kInfiniteFloat, kInfiniteFloat});
}

TEST(Exponential, IsNotANumberIfItsArgumentIsNotANumber) {
  for (const auto function : {exponential, exponential_of_negative, one_plus_exponential, logarithm,
                              logarithm_of_one_plus, hyperbolic_tangent, error_function}) {
    EXPECT_TRUE(std::isnan(function(NAN)));
    EXPECT_TRUE(std::isnan(function(-NAN)));
  }
}

}  // namespace
}  // namespace holdfast::compute
