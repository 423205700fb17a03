// RMSprop against its formulas in double, and the options that it refuses.

#include "holdfast/optim/rmsprop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "holdfast/base/error.h"
#include "unit/optim/support/training_run.h"

namespace holdfast {
namespace {

using testing::ElementsAre;

// Each step rounds the parameter twice, and a change of at most 10 lr (after one gradient of 1, v is a tenth). The
// errors of running means are those of ten steps. Momentum sums ten changes.
double tolerance_of(const Deviation& deviation, double step) {
  return 100 * kHalfUlp * (2 * deviation.largest_parameter + 500 * step);
}

// The formulas of the header, with all options.
ReferenceUpdate reference_of(const RMSpropOptions& options, double rate) {
  return [options, rate](std::int64_t, double gradient, ReferenceElement& element) {
    const double rho = options.rho;
    double& velocity = element.slots[0];
    velocity = rho * velocity + (1 - rho) * gradient * gradient;
    double variance = velocity;
    if (options.centered) {
      double& average = element.slots.back();
      average = rho * average + (1 - rho) * gradient;
      variance = std::max(0.0, velocity - average * average);
    }
    double change = rate * gradient / std::sqrt(variance + options.epsilon);
    if (options.momentum > 0) change = element.slots[1] = options.momentum * element.slots[1] + change;
    element.parameter = element.parameter * (1 - rate * options.weight_decay) - change;
  };
}

TEST(RMSprop, FollowsItsFormulaForAHundredSteps) {
  constexpr float kRate = 0.01F;
  for (const RMSpropOptions& options :
       {RMSpropOptions{.learning_rate = kRate}, RMSpropOptions{.learning_rate = kRate, .weight_decay = 0.1F},
        RMSpropOptions{.learning_rate = kRate, .rho = 0.5F, .momentum = 0.9F}}) {
    const RMSprop optimizer{options};

    const Deviation deviation = largest_deviation(optimizer, reference_of(options, kRate));

    EXPECT_LT(deviation.parameter, tolerance_of(deviation, 10 * kRate)) << optimizer.configuration();
  }
}

// In the first steps, a variance of two gradients that are nearly equal is mostly rounding. An epsilon of a hundredth
// keeps its errors small.
TEST(RMSprop, FollowsItsFormulaWithCenteredGradients) {
  constexpr float kRate = 0.01F;
  for (const RMSpropOptions& options :
       {RMSpropOptions{.learning_rate = kRate, .epsilon = 0.01F, .centered = true},
        RMSpropOptions{
            .learning_rate = kRate, .momentum = 0.5F, .epsilon = 0.01F, .centered = true, .weight_decay = 0.1F}}) {
    const RMSprop optimizer{options};

    const Deviation deviation = largest_deviation(optimizer, reference_of(options, kRate));

    EXPECT_LT(deviation.parameter, tolerance_of(deviation, 10 * kRate)) << optimizer.configuration();
  }
}

// v and a^2 are equal here but for rounding, and epsilon is far below that.
TEST(RMSprop, StaysFiniteWhereTheVarianceIsRounding) {
  std::vector<float> parameters = {1.0F};
  std::vector<float> velocity(1);
  std::vector<float> average(1);
  const std::vector<std::span<float>> slots = {velocity, average};
  const RMSprop optimizer{{.centered = true}};

  for (std::int64_t step = 1; step <= 1000; ++step) {
    optimizer.update(step, parameters, std::vector<float>{12'345.678F}, slots);
    ASSERT_TRUE(std::isfinite(parameters[0])) << step;
  }
}

TEST(RMSprop, HasTheSlotsThatItsOptionsNeed) {
  EXPECT_THAT(RMSprop{}.slot_names(), ElementsAre("velocity"));
  EXPECT_THAT(RMSprop{{.momentum = 0.1F}}.slot_names(), ElementsAre("velocity", "momentum"));
  EXPECT_THAT(RMSprop{{.centered = true}}.slot_names(), ElementsAre("velocity", "average_gradient"));
  EXPECT_THAT((RMSprop{{.momentum = 0.1F, .centered = true}}.slot_names()),
              ElementsAre("velocity", "momentum", "average_gradient"));
}

TEST(RMSprop, HasTheDefaultsOfKeras) {
  EXPECT_EQ(RMSprop{}.configuration(), R"({"kind":"rmsprop","learning_rate":0.001,"rho":0.9,"momentum":0,)"
                                       R"("epsilon":1e-07,"centered":false,"weight_decay":0})");
}

TEST(RMSprop, RefusesOptionsOutOfTheirRange) {
  constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();
  for (const RMSpropOptions& options :
       {RMSpropOptions{.learning_rate = -0.1F}, RMSpropOptions{.learning_rate = kNoNumber},
        RMSpropOptions{.weight_decay = -0.1F}, RMSpropOptions{.weight_decay = kNoNumber},
        RMSpropOptions{.clip_norm = 0}, RMSpropOptions{.clip_value = 1.0F, .clip_norm = 1.0F}, RMSpropOptions{.rho = 1},
        RMSpropOptions{.rho = -0.1F}, RMSpropOptions{.rho = kNoNumber}, RMSpropOptions{.momentum = 1.1F},
        RMSpropOptions{.momentum = -0.1F}, RMSpropOptions{.epsilon = 0}}) {
    EXPECT_THROW(RMSprop{options}, Error) << options.learning_rate.of_update(1) << ", " << options.weight_decay;
  }
}

}  // namespace
}  // namespace holdfast
