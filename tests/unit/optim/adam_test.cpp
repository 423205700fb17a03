// Adam against its formula in double, and the options that it refuses.

#include "holdfast/optim/adam.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "holdfast/base/error.h"
#include "unit/optim/support/training_run.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::EndsWith;

// In the first step m and v are a tenth of g and a thousandth of g^2. The bias corrections undo that, and g / |g| is
// left.
TEST(Adam, MovesByTheLearningRateInItsFirstStep) {
  std::vector<float> parameters = {10.0F, 10.0F, -3.0F};
  std::vector<float> m(3);
  std::vector<float> v(3);
  const std::vector<std::span<float>> slots = {m, v};

  Adam{0.1F}.update(1, parameters, std::vector<float>{10.0F, -0.01F, 5.0F}, slots);

  // Epsilon against sqrt(v) = 0.01 * sqrt(0.001) is 3e-4 of the step; rounding of 10 is 5e-7.
  EXPECT_NEAR(parameters[0], 9.9, 1e-6);
  EXPECT_NEAR(parameters[1], 10.1, 0.1 * 4e-4);
  EXPECT_NEAR(parameters[2], -3.1, 1e-6);
}

// Each step rounds the parameter (half an ulp of at most |w|) and a step of at most lr / sqrt(1 - beta_2) * (1 -
// beta_1) = 3.2 lr (Kingma and Ba, section 2.1). The step itself is off by the errors of m, at most 10 roundings' worth
// of three operations on |g| <= 1 against sqrt(v) > 0.1 after the first steps, those of v, half as much, and five
// operations more: less than 500 roundings.
TEST(Adam, FollowsItsFormulaForAHundredSteps) {
  constexpr float kRate = 0.01F;
  const AdamOptions options{.learning_rate = kRate};

  const Deviation deviation =
      largest_deviation(Adam{options}, [&](std::int64_t step, double gradient, ReferenceElement& element) {
        double& m = element.slots[0];
        double& v = element.slots[1];
        const auto t = static_cast<double>(step);
        m += (gradient - m) * (1.0 - options.beta_1);
        v += (gradient * gradient - v) * (1.0 - options.beta_2);
        const double rate = kRate * std::sqrt(1.0 - std::pow(options.beta_2, t)) / (1.0 - std::pow(options.beta_1, t));
        element.parameter -= m * rate / (std::sqrt(v) + options.epsilon);
      });

  EXPECT_LT(deviation.parameter,
            100 * kHalfUlp * (deviation.largest_parameter + 500 * 3.2 * static_cast<double>(kRate)));
}

TEST(Adam, StaysFiniteAtAGradientOfZero) {
  std::vector<float> parameters = {1.0F};
  std::vector<float> m(1);
  std::vector<float> v(1);
  const std::vector<std::span<float>> slots = {m, v};

  Adam{}.update(1, parameters, std::vector<float>{0.0F}, slots);

  EXPECT_EQ(parameters[0], 1.0F);
}

TEST(Adam, StillMovesAfterManySteps) {
  std::vector<float> parameters = {1.0F};
  std::vector<float> m = {1.0F};
  std::vector<float> v = {1.0F};
  const std::vector<std::span<float>> slots = {m, v};

  Adam{0.25F}.update(std::int64_t{1} << 40, parameters, std::vector<float>{1.0F}, slots);

  EXPECT_NEAR(parameters[0], 0.75, 1e-6);  // no bias is left: 0.25 / (1 + 1e-7)
}

TEST(Adam, KeepsTwoSlots) {
  EXPECT_THAT(Adam{}.slot_names(), ElementsAre("m", "v"));
}

TEST(Adam, HasTheDefaultsOfKeras) {
  EXPECT_EQ(Adam{}.configuration(),
            R"({"kind":"adam","learning_rate":0.001,"beta_1":0.9,"beta_2":0.999,"epsilon":1e-07})");
}

TEST(Adam, SaysHowItClips) {
  EXPECT_THAT(Adam{{.clip_value = 0.5F}}.configuration(), EndsWith(R"(,"epsilon":1e-07,"clip_value":0.5})"));
  EXPECT_THAT(Adam{{.clip_norm = 2}}.configuration(), EndsWith(R"(,"epsilon":1e-07,"clip_norm":2})"));
  EXPECT_THAT(Adam{{.global_clip_norm = 3}}.configuration(), EndsWith(R"(,"epsilon":1e-07,"global_clip_norm":3})"));
}

TEST(Adam, TakesALearningRateOrOptions) {
  EXPECT_EQ(Adam{1e-2F}.configuration(), Adam{{.learning_rate = 1e-2F}}.configuration());
}

TEST(Adam, RefusesOptionsOutOfTheirRange) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const AdamOptions& options :
       {AdamOptions{.learning_rate = -1e-3F}, AdamOptions{.learning_rate = kNan}, AdamOptions{.beta_1 = 1.0F},
        AdamOptions{.beta_1 = -0.1F}, AdamOptions{.beta_1 = kNan}, AdamOptions{.beta_2 = 1.0F},
        AdamOptions{.beta_2 = -0.1F}, AdamOptions{.beta_2 = kNan}, AdamOptions{.epsilon = 0},
        AdamOptions{.epsilon = -1e-7F}, AdamOptions{.epsilon = kNan}, AdamOptions{.clip_norm = 0},
        AdamOptions{.clip_value = -1.0F}, AdamOptions{.global_clip_norm = kNan},
        AdamOptions{.clip_norm = 1.0F, .global_clip_norm = 1.0F}}) {
    try {
      const Adam adam{options};
      ADD_FAILURE() << "took " << adam.configuration();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    }
  }
}

TEST(Adam, KeepsTheLargestVelocityWithAmsgrad) {
  const Adam optimizer{{.learning_rate = 0.1F, .beta_2 = 0.5F, .amsgrad = true}};
  std::vector<float> parameters(1), m(1), v(1), v_hat(1);
  const std::vector<std::span<float>> slots = {m, v, v_hat};

  optimizer.update(1, parameters, std::vector<float>{4}, slots);
  optimizer.update(2, parameters, std::vector<float>{0}, slots);

  EXPECT_THAT(optimizer.slot_names(), ElementsAre("m", "v", "v_hat"));
  EXPECT_EQ(v[0], 4);
  EXPECT_EQ(v_hat[0], 8);
  EXPECT_EQ(optimizer.configuration(), R"({"kind":"adam","learning_rate":0.1,"beta_1":0.9,"beta_2":0.5,)"
                                       R"("epsilon":1e-07,"amsgrad":true})");
}

// Where v never falls, amsgrad changes nothing.
TEST(Adam, GivesTheSameBitsWithAmsgradInItsFirstStep) {
  std::vector<float> parameters = {10.0F, 0.5F, -3.0F}, m(3), v(3), v_hat(3);
  std::vector<float> others = parameters, other_m(3), other_v(3);
  const std::vector<std::span<float>> slots = {m, v, v_hat}, other_slots = {other_m, other_v};
  const std::vector<float> gradients = {10.0F, -0.01F, 5.0F};

  Adam{{.amsgrad = true, .weight_decay = 0.1F}}.update(1, parameters, gradients, slots);
  Adam{{.weight_decay = 0.1F}}.update(1, others, gradients, other_slots);

  EXPECT_EQ(parameters, others);
}

TEST(AdamDeathTest, AssertsThatStepsCountFromOne) {
  std::vector<float> values(1);
  const std::vector<std::span<float>> slots = {values, values};

  EXPECT_DEATH(Adam{}.update(0, values, values, slots), "step >= 1");
}

TEST(AdamDeathTest, AssertsThatRangesHaveOneLength) {
  std::vector<float> one(1);
  std::vector<float> two(2);
  const std::vector<std::span<float>> slots = {one, two};

  EXPECT_DEATH(Adam{}.update(1, one, one, slots), "size");
}

}  // namespace
}  // namespace holdfast
