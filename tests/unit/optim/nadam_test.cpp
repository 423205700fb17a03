// Nadam against its formula in double, and the options that it refuses.

#include "holdfast/optim/nadam.h"

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

// As in the test of Adam: a step is at most 3.2 lr, and is off by less than 500 roundings.
TEST(Nadam, FollowsItsFormulaForAHundredSteps) {
  constexpr float kRate = 0.01F;
  for (const NadamOptions& options :
       {NadamOptions{.learning_rate = kRate},
        NadamOptions{.learning_rate = kRate, .beta_1 = 0.5F, .beta_2 = 0.9F, .weight_decay = 0.1F}}) {
    const Nadam optimizer{options};
    double product = 1;  // of all momenta until now; each element counts anew
    std::int64_t last_step = 0;

    const Deviation deviation =
        largest_deviation(optimizer, [&](std::int64_t step, double gradient, ReferenceElement& element) {
          const auto momentum_of = [&](std::int64_t t) {
            return options.beta_1 * (1 - 0.5 * std::pow(0.96, static_cast<double>(t)));
          };
          if (step != last_step) product *= momentum_of(step);
          last_step = step;
          double& m = element.slots[0];
          double& v = element.slots[1];
          m += (gradient - m) * (1.0 - options.beta_1);
          v += (gradient * gradient - v) * (1.0 - options.beta_2);
          const double next = momentum_of(step + 1);
          const double ahead = next * m / (1 - product * next) + (1 - momentum_of(step)) * gradient / (1 - product);
          const double corrected = v / (1.0 - std::pow(options.beta_2, static_cast<double>(step)));
          element.parameter = element.parameter * (1.0 - static_cast<double>(kRate) * options.weight_decay) -
                              kRate * ahead / (std::sqrt(corrected) + options.epsilon);
        });

    EXPECT_LT(deviation.parameter, 100 * kHalfUlp * (2 * deviation.largest_parameter + 500 * 3.2 * kRate))
        << optimizer.configuration();
  }
}

// All momenta of late steps are equal, and nothing but the gradient is left of the corrections.
TEST(Nadam, StillMovesAfterManySteps) {
  std::vector<float> parameters = {1.0F};
  std::vector<float> momentum = {1.0F};
  std::vector<float> velocity = {1.0F};
  const std::vector<std::span<float>> slots = {momentum, velocity};

  Nadam{0.25F}.update(std::int64_t{1} << 40, parameters, std::vector<float>{1.0F}, slots);

  EXPECT_NEAR(parameters[0], 0.75, 1e-6);  // 0.25 (0.9 + 0.1) / (1 + 1e-7)
}

TEST(Nadam, KeepsTwoSlots) {
  EXPECT_THAT(Nadam{}.slot_names(), ElementsAre("momentum", "velocity"));
}

TEST(Nadam, HasTheDefaultsOfKeras) {
  EXPECT_EQ(Nadam{}.configuration(), R"({"kind":"nadam","learning_rate":0.001,"beta_1":0.9,"beta_2":0.999,)"
                                     R"("epsilon":1e-07,"weight_decay":0})");
}

TEST(Nadam, RefusesOptionsOutOfTheirRange) {
  constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();
  for (const NadamOptions& options :
       {NadamOptions{.learning_rate = -0.1F}, NadamOptions{.learning_rate = kNoNumber},
        NadamOptions{.weight_decay = -0.1F}, NadamOptions{.weight_decay = kNoNumber}, NadamOptions{.clip_norm = 0},
        NadamOptions{.clip_value = 1.0F, .clip_norm = 1.0F}, NadamOptions{.beta_1 = 1}, NadamOptions{.beta_1 = -0.1F},
        NadamOptions{.beta_2 = 1}, NadamOptions{.beta_2 = kNoNumber}, NadamOptions{.epsilon = 0}}) {
    EXPECT_THROW(Nadam{options}, Error) << options.learning_rate.of_update(1) << ", " << options.weight_decay;
  }
}

}  // namespace
}  // namespace holdfast
