#include "holdfast/nn/initializer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "holdfast/base/error.h"

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
  for (const Initializer& initializer : {Initializer::glorot_uniform(), Initializer::glorot_normal(),
                                         Initializer::he_uniform(), Initializer::he_normal(), Initializer::zeros(),
                                         Initializer::ones(), Initializer::normal(0.02F), Initializer::normal(0)}) {
    EXPECT_EQ(Initializer::from_name(initializer.name()), initializer) << initializer.name();
  }
  EXPECT_EQ(Initializer::normal(0.02F).name(), "normal(0.02)");
  EXPECT_EQ(Initializer::glorot_uniform().name(), "glorot_uniform");
}

TEST(Initializer, RefusesNamesThatItDoesNotGive) {
  for (const std::string name : {"", "glorot", "GLOROT_UNIFORM", "normal", "normal(", "normal()", "normal(-1)",
                                 "normal(nan)", "normal(1e99)", "normal(0.1)x", "zeros "}) {
    try {
      const Initializer initializer = Initializer::from_name(name);
      ADD_FAILURE() << "took \"" << name << "\" for " << initializer.name();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    }
  }
}

TEST(Initializer, RefusesAnImpossibleDeviation) {
  EXPECT_THROW(Initializer::normal(-1), Error);
  EXPECT_THROW(Initializer::normal(std::numeric_limits<float>::quiet_NaN()), Error);
  EXPECT_THROW(Initializer::normal(std::numeric_limits<float>::infinity()), Error);
}

}  // namespace
}  // namespace holdfast
