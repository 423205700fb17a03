#include "holdfast/nn/initializer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/nn/dense.h"
#include "holdfast/nn/sequential.h"

namespace holdfast {
namespace {

using testing::Each;

constexpr std::size_t kDraws = 50'000;
constexpr std::int64_t kFanIn = 300;
constexpr std::int64_t kFanOut = 100;

Random draws() {
  return Random(1, Purpose::initial_weights, 0, 0);
}

std::vector<float> filled(const Initializer& initializer) {
  std::vector<float> values(kDraws);
  initializer.fill(values, kFanIn, kFanOut, draws());
  return values;
}

double mean(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double variance(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return sum / static_cast<double>(values.size());
}

// Sample mean and variance of a fixed sequence within five standard deviations: with n draws of variance V and kurtosis
// K the mean deviates by sqrt(V / n) and the mean square by V sqrt((K - 1) / n).
void expect_moments(const std::vector<float>& values, double expected_variance, double kurtosis) {
  const auto n = static_cast<double>(values.size());
  EXPECT_NEAR(mean(values), 0, 5 * std::sqrt(expected_variance / n));
  EXPECT_NEAR(variance(values), expected_variance, 5 * expected_variance * std::sqrt((kurtosis - 1) / n));
}

void expect_uniform(const std::vector<float>& values, double limit) {
  expect_moments(values, limit * limit / 3, 9.0 / 5);
  // The limit and the product with it are rounded to float once each.
  for (const float value : values) ASSERT_LE(std::abs(value), limit * (1 + 0x1p-22));
}

void expect_normal(const std::vector<float>& values, double expected_variance) {
  expect_moments(values, expected_variance, 3);
  // Untruncated: 5 in 100 draws lie beyond two deviations.
  EXPECT_TRUE(std::any_of(values.begin(), values.end(),
                          [&](float value) { return std::abs(value) > 2.5 * std::sqrt(expected_variance); }));
}

TEST(Initializer, DrawsGlorotUniformWithinItsLimit) {
  expect_uniform(filled(Initializer::glorot_uniform()), std::sqrt(6.0 / (kFanIn + kFanOut)));
}

TEST(Initializer, DrawsHeUniformWithinItsLimit) {
  expect_uniform(filled(Initializer::he_uniform()), std::sqrt(6.0 / kFanIn));
}

TEST(Initializer, DrawsGlorotNormalWithItsVariance) {
  expect_normal(filled(Initializer::glorot_normal()), 2.0 / (kFanIn + kFanOut));
}

TEST(Initializer, DrawsHeNormalWithItsVariance) {
  expect_normal(filled(Initializer::he_normal()), 2.0 / kFanIn);
}

TEST(Initializer, DrawsNormalWithItsDeviation) {
  expect_normal(filled(Initializer::normal(0.02F)), 0.02 * 0.02);
}

TEST(Initializer, FillsWithZerosAndOnes) {
  EXPECT_THAT(filled(Initializer::zeros()), Each(0.0F));
  EXPECT_THAT(filled(Initializer::ones()), Each(1.0F));
}

// A normal distribution that is cut off at two deviations keeps 0.774 of its variance; its kurtosis is 2.37.
void expect_truncated_normal(const std::vector<float>& values, double expected_variance) {
  expect_moments(values, expected_variance, 2.37);
  const double deviation = std::sqrt(expected_variance) / 0.87962566103423978;
  double largest = 0;
  for (const float value : values) largest = std::max(largest, static_cast<double>(std::abs(value)));
  EXPECT_LE(largest, 2 * deviation);
  EXPECT_GE(largest, 1.99 * deviation);
}

TEST(Initializer, CutsTheTailsOffAsKerasDoes) {
  expect_truncated_normal(filled(Initializer::truncated_glorot_normal()), 2.0 / (kFanIn + kFanOut));
  expect_truncated_normal(filled(Initializer::truncated_he_normal()), 2.0 / kFanIn);
  expect_truncated_normal(filled(Initializer::lecun_normal()), 1.0 / kFanIn);
  expect_truncated_normal(filled(Initializer::truncated_normal(0, 0.5F)), 0.25 * 0.7737413);
}

TEST(Initializer, ScalesTheVarianceByEachFan) {
  expect_uniform(filled(Initializer::lecun_uniform()), std::sqrt(3.0 / kFanIn));
  expect_uniform(filled(Initializer::variance_scaling(
                     {.scale = 3, .mode = FanMode::fan_out, .distribution = ScalingDistribution::uniform})),
                 std::sqrt(9.0 / kFanOut));
  expect_normal(
      filled(Initializer::variance_scaling(
          {.scale = 0.5F, .mode = FanMode::fan_avg, .distribution = ScalingDistribution::untruncated_normal})),
      1.0 / (kFanIn + kFanOut));
}

TEST(Initializer, ShiftsByTheMean) {
  std::vector<float> values = filled(Initializer::random_normal(3, 0.5F));
  for (float& value : values) value -= 3;
  expect_normal(values, 0.25);
  values = filled(Initializer::random_uniform(2, 4));
  for (float& value : values) value -= 3;
  expect_uniform(values, 1);
}

std::vector<float> filled_array(const Initializer& initializer, const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.element_count()));
  initializer.fill(values, shape, 1, 1, draws());
  return values;
}

TEST(Initializer, OrthogonalVectorsHaveTheLengthOfTheGain) {
  for (const Shape& shape : {Shape{40, 7}, Shape{7, 40}, Shape{2, 3, 4, 9}, Shape{5, 5}}) {
    const std::vector<float> values = filled_array(Initializer::orthogonal(2), shape);
    const auto columns = static_cast<std::size_t>(shape[shape.rank() - 1]);
    const std::size_t rows = values.size() / columns;
    const bool is_wide = rows < columns;
    const auto element = [&](std::size_t vector, std::size_t i) -> double {
      return is_wide ? values[vector * columns + i] : values[i * columns + vector];
    };
    const std::size_t vectors = std::min(rows, columns), length = std::max(rows, columns);
    for (std::size_t a = 0; a < vectors; ++a) {
      for (std::size_t b = 0; b <= a; ++b) {
        double product = 0;
        for (std::size_t i = 0; i < length; ++i) product += element(a, i) * element(b, i);
        // Elements are rounded to float once, and their squares add up to 4.
        EXPECT_NEAR(product, a == b ? 4 : 0, 8 * 0x1p-23) << shape.to_string();
      }
    }
  }
}

TEST(Initializer, OrthogonalIsTheQOfThePositiveDiagonal) {
  // The first column is the first column of the draws, made a unit vector: its sign is kept.
  std::vector<float> normal(12);
  Initializer::normal(1).fill(normal, 1, 1, draws());
  const std::vector<float> q = filled_array(Initializer::orthogonal(), {4, 3});
  double length = 0;
  for (std::size_t row = 0; row < 4; ++row) length += static_cast<double>(normal[row * 3]) * normal[row * 3];
  for (std::size_t row = 0; row < 4; ++row) {
    EXPECT_NEAR(q[row * 3], normal[row * 3] / std::sqrt(length), 0x1p-23);
  }
}

TEST(Initializer, FillsDiagonalsAndGivenValues) {
  EXPECT_EQ(filled_array(Initializer::identity(3), {2, 3}), (std::vector<float>{3, 0, 0, 0, 3, 0}));
  EXPECT_EQ(filled_array(Initializer::values({1, 2, 3, 4}), {2, 2}), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_THAT(filled(Initializer::constant(0.5F)), Each(0.5F));
}

TEST(Initializer, RefusesArraysThatItCannotFill) {
  EXPECT_THROW(Initializer::orthogonal().check({4}), Error);
  EXPECT_THROW(Initializer::identity().check({4, 4, 4}), Error);
  EXPECT_THROW(Initializer::values({1, 2}).check({3}), Error);
  EXPECT_NO_THROW(Initializer::values({1, 2}).check({2, 1}));
  EXPECT_NO_THROW(Initializer::zeros().check({4}));
  EXPECT_THROW((Sequential{Input{3}, Dense{2, {.bias_initializer = Initializer::orthogonal()}}}), Error);
}

TEST(Initializer, GivesTheSameBitsForTheSameDraws) {
  EXPECT_EQ(filled(Initializer::glorot_uniform()), filled(Initializer::glorot_uniform()));
}

TEST(Initializer, StartsAlikeForAnyLength) {
  const std::vector<float> many = filled(Initializer::he_normal());
  std::vector<float> few(10);

  Initializer::he_normal().fill(few, kFanIn, kFanOut, draws());

  EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin()));
}

TEST(Initializer, TakesFansOfZeroForOne) {
  std::vector<float> with_zero(10);
  std::vector<float> with_one(10);

  Initializer::glorot_uniform().fill(with_zero, 0, 0, draws());
  Initializer::glorot_uniform().fill(with_one, 1, 1, draws());

  EXPECT_EQ(with_zero, with_one);
}

TEST(Initializer, IsFoundByItsName) {
  for (const Initializer& initializer : {Initializer::glorot_uniform(),
                                         Initializer::glorot_normal(),
                                         Initializer::he_uniform(),
                                         Initializer::he_normal(),
                                         Initializer::zeros(),
                                         Initializer::ones(),
                                         Initializer::normal(0.02F),
                                         Initializer::normal(0),
                                         Initializer::lecun_uniform(),
                                         Initializer::lecun_normal(),
                                         Initializer::truncated_glorot_normal(),
                                         Initializer::truncated_he_normal(),
                                         Initializer::variance_scaling({.scale = 0.1F, .mode = FanMode::fan_out}),
                                         Initializer::constant(0.1F),
                                         Initializer::values({1, 0.1F, -2}),
                                         Initializer::random_normal(1, 0.1F),
                                         Initializer::truncated_normal(),
                                         Initializer::truncated_normal(1),
                                         Initializer::random_uniform(-2, 0.1F),
                                         Initializer::orthogonal(2),
                                         Initializer::identity()}) {
    EXPECT_EQ(Initializer::from_name(initializer.name()), initializer) << initializer.name();
  }
  EXPECT_EQ(Initializer::normal(0.02F).name(), "normal(0.02)");
  EXPECT_EQ(Initializer::glorot_uniform().name(), "glorot_uniform");
  EXPECT_EQ(Initializer::constant(1).name(), "ones");
  EXPECT_EQ(Initializer::lecun_normal().name(), "lecun_normal");
  EXPECT_EQ(Initializer::variance_scaling({.scale = 3}).name(), "variance_scaling(3,fan_in,truncated_normal)");
}

TEST(Initializer, RefusesNamesThatItDoesNotGive) {
  for (const std::string name : {"",
                                 "glorot",
                                 "GLOROT_UNIFORM",
                                 "normal",
                                 "normal(",
                                 "normal()",
                                 "normal(-1)",
                                 "normal(nan)",
                                 "normal(1e99)",
                                 "normal(0.1)x",
                                 "zeros ",
                                 "zeros(1)",
                                 "constant()",
                                 "constant(1,2)",
                                 "uniform(1)",
                                 "uniform(2,1)",
                                 "variance_scaling(0,fan_in,uniform)",
                                 "variance_scaling(1,fan,uniform)",
                                 "variance_scaling(1,fan_in)",
                                 "values(1,)",
                                 "orthogonal(nan)"}) {
    try {
      const Initializer initializer = Initializer::from_name(name);
      ADD_FAILURE() << "took \"" << name << "\" for " << initializer.name();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    }
  }
}

TEST(Initializer, RefusesLimitsWhoseDifferenceOverflows) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  EXPECT_THROW(Initializer::random_uniform(-kLargest, kLargest), Error);
  EXPECT_THROW(Initializer::from_name("uniform(-3e38,3e38)"), Error);
  EXPECT_NO_THROW(Initializer::random_uniform(-kLargest / 2, kLargest / 2));
}

TEST(Initializer, RefusesAnImpossibleDeviation) {
  EXPECT_THROW(Initializer::normal(-1), Error);
  EXPECT_THROW(Initializer::normal(std::numeric_limits<float>::quiet_NaN()), Error);
  EXPECT_THROW(Initializer::normal(std::numeric_limits<float>::infinity()), Error);
}

}  // namespace
}  // namespace holdfast
