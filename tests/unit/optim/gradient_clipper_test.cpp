// Clipping by value, by the norm of each array and by the norm of all arrays, on the host.

#include "optim/gradient_clipper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "holdfast/core/random.h"
#include "support/passes.h"

namespace holdfast {
namespace {

using testing::ElementsAre;

constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Arrays of two and one elements, with padding between and after them.
std::vector<float> clip(const GradientClipping& clipping, const std::vector<float>& gradients) {
  GradientClipper clipper(clipping, {{.begin = 0, .end = 2}, {.begin = 4, .end = 5}}, gradients.size(), host_memory(),
                          nullptr);
  const std::span<const float> clipped = clipper.clip(gradients);
  return {clipped.begin(), clipped.end()};
}

TEST(GradientClipper, KeepsElementsWithinAValue) {
  EXPECT_THAT(clip({.value = 0.5F}, {0.25F, -3, 0, 0, 0.75F, 0}), ElementsAre(0.25F, -0.5F, 0, 0, 0.5F, 0));
}

TEST(GradientClipper, ScalesEachArrayToItsNorm) {
  // Norms 5 and 12.
  EXPECT_THAT(clip({.norm = 2.5F}, {3, -4, 0, 0, 12, 0}), ElementsAre(1.5F, -2, 0, 0, 2.5F, 0));
}

TEST(GradientClipper, ScalesAllArraysToOneNorm) {
  // Norm 13.
  EXPECT_THAT(clip({.global_norm = 6.5F}, {3, -4, 0, 0, 12, 0}), ElementsAre(1.5F, -2, 0, 0, 6, 0));
}

TEST(GradientClipper, LeavesSmallGradientsAsTheyAre) {
  const std::vector<float> gradients = {0.1F, -0.2F, 0, 0, 0.3F, 0};

  EXPECT_EQ(clip({.norm = 0.3F}, gradients), gradients);
  EXPECT_EQ(clip({.global_norm = 0.5F}, gradients), gradients);
  EXPECT_EQ(clip({.value = 0.3F}, gradients), gradients);
}

TEST(GradientClipper, LeavesZerosAlone) {
  const std::vector<float> zeros(6);

  EXPECT_EQ(clip({.norm = 1}, zeros), zeros);
  EXPECT_EQ(clip({.global_norm = 1}, zeros), zeros);
}

// The sum of squares exceeds the range of a float.
TEST(GradientClipper, ClipsGradientsWhoseSquaresOverflowAFloat) {
  // The scale and the product are each rounded once.
  EXPECT_NEAR(clip({.norm = 5}, {3e38F, 0, 0, 0, 1, 0})[0], 5, 5 * 0x1p-23);
}

TEST(GradientClipper, LeavesNonFiniteGradientsToBeFound) {
  const std::vector<float> by_value = clip({.value = 1}, {kNotANumber, -kInfinity, 0, 0, 2, 0});
  EXPECT_TRUE(std::isnan(by_value[0]));
  EXPECT_EQ(by_value[1], -1);

  const std::vector<float> by_norm = clip({.norm = 1}, {kInfinity, 3, 0, 0, 2, 0});
  EXPECT_THAT(by_norm, ElementsAre(kInfinity, 3, 0, 0, 1, 0));

  const std::vector<float> by_global_norm = clip({.global_norm = 1}, {kNotANumber, 3, 0, 0, 2, 0});
  EXPECT_TRUE(std::isnan(by_global_norm[0]));
  EXPECT_EQ(by_global_norm[1], 3);
}

TEST(GradientClipper, FindsTheNormOfALongArray) {
  constexpr std::size_t kCount = 100'003;
  Random random(1, Purpose::user, 0, 0);
  std::vector<float> gradients(kCount);
  double squares = 0;
  for (float& gradient : gradients) {
    gradient = random.normal();
    squares += static_cast<double>(gradient) * gradient;
  }
  GradientClipper clipper({.norm = 1}, {{.begin = 0, .end = kCount}}, kCount, host_memory(), nullptr);

  const std::span<const float> clipped = clipper.clip(gradients);

  // Either sum is off by kCount roundings of a double at the most, far below one of the scale or the product.
  for (const std::size_t i : {std::size_t{0}, std::size_t{4095}, std::size_t{4096}, kCount - 1}) {
    const double expected = gradients[i] / std::sqrt(squares);
    EXPECT_NEAR(clipped[i], expected, std::abs(expected) * 0x1p-22);
  }
}

TEST(GradientClipper, GivesTheSameBitsHoweverPassesAreCut) {
  constexpr std::size_t kCount = 50'003;
  Random random(1, Purpose::user, 0, 0);
  std::vector<float> gradients(kCount);
  for (float& gradient : gradients) gradient = random.normal();
  for (const GradientClipping& clipping :
       {GradientClipping{.value = 0.5F}, GradientClipping{.norm = 1}, GradientClipping{.global_norm = 1}}) {
    const std::vector<compute::NormRange> arrays = {{.begin = 0, .end = 20'000}, {.begin = 20'016, .end = kCount}};
    GradientClipper alone(clipping, arrays, kCount, host_memory(), nullptr);
    GradientClipper in_pieces(clipping, arrays, kCount, host_memory(), nullptr);

    const std::span<const float> expected = alone.clip(gradients);
    const std::span<const float> clipped = in_pieces.clip(gradients, pass_in_pieces);

    EXPECT_EQ(std::memcmp(clipped.data(), expected.data(), kCount * sizeof(float)), 0);
  }
}

TEST(GradientClipper, DoesNotChangeItsArgument) {
  const std::vector<float> before = {3, -4, 0, 0, 12, 0};
  const std::vector<float> gradients = before;

  clip({.norm = 1}, gradients);

  EXPECT_EQ(gradients, before);
}

}  // namespace
}  // namespace holdfast
