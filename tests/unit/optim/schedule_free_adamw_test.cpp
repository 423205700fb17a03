// The average that ScheduleFreeAdamW keeps, and the options that it refuses. Its steps are compared with Keras's in
// keras_cases_test.cpp.

#include "holdfast/optim/schedule_free_adamw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

using testing::ElementsAre;

struct ScheduleFreeRun {
  std::vector<float> parameters;
  std::vector<float> momentum = std::vector<float>(parameters.size());
  std::vector<float> velocity = std::vector<float>(parameters.size());

  void step(const ScheduleFreeAdamW& optimizer, std::int64_t step, const std::vector<float>& gradients) {
    const std::vector<std::span<float>> slots = {momentum, velocity};
    optimizer.update(step, parameters, gradients, slots);
  }
};

TEST(ScheduleFreeAdamW, BeginsWithTheParametersThatItFinds) {
  ScheduleFreeRun run{.parameters = {3, -2}};

  run.step(ScheduleFreeAdamW{0.25F}, 1, {0, 0});

  EXPECT_THAT(run.momentum, ElementsAre(3, -2));
  EXPECT_THAT(run.parameters, ElementsAre(3, -2));
}

// With a beta_1 of 1 less a little, the parameters are nearly the mean of all momenta.
TEST(ScheduleFreeAdamW, MovesTheParametersToTheMeanOfAllSteps) {
  const ScheduleFreeAdamW optimizer{{.learning_rate = 0.25F, .beta_1 = 0.9999F}};
  ScheduleFreeRun run{.parameters = {1}};
  double sum = 0;

  for (std::int64_t step = 1; step <= 8; ++step) {
    run.step(optimizer, step, {1});
    sum += run.momentum[0];
  }

  EXPECT_NEAR(run.momentum[0], 1 - 8 * 0.25, 1e-5);
  EXPECT_NEAR(run.parameters[0], sum / 8, 1e-3);
}

TEST(ScheduleFreeAdamW, TakesSmallerStepsWhileItWarmsUp) {
  const ScheduleFreeAdamW optimizer{{.learning_rate = 0.5F, .beta_1 = 0, .warmup_steps = 4}};
  ScheduleFreeRun run{.parameters = {0}};
  std::vector<float> rates;

  for (std::int64_t step = 1; step <= 5; ++step) {
    const float before = run.parameters[0];
    run.step(optimizer, step, {1});
    rates.push_back(before - run.parameters[0]);
  }

  for (std::size_t i = 0; i < rates.size(); ++i) {
    EXPECT_NEAR(rates[i], 0.125F * static_cast<float>(std::min<std::size_t>(i + 1, 4)), 1e-6F) << i;
  }
}

TEST(ScheduleFreeAdamW, HasTheDefaultsOfKeras) {
  EXPECT_EQ(ScheduleFreeAdamW{}.configuration(),
            R"({"kind":"schedule_free_adamw","learning_rate":0.0025,"beta_1":0.9,"beta_2":0.999,"epsilon":1e-08,)"
            R"("warmup_steps":0,"weight_decay":0})");
}

TEST(ScheduleFreeAdamW, RefusesOptionsOutOfTheirRange) {
  using Options = ScheduleFreeAdamWOptions;
  for (const Options& options :
       {Options{.learning_rate = -0.1F}, Options{.beta_1 = 1}, Options{.beta_2 = -0.1F}, Options{.epsilon = 0},
        Options{.warmup_steps = -1}, Options{.weight_decay = -0.1F}, Options{.clip_norm = 0}}) {
    EXPECT_THROW(ScheduleFreeAdamW{options}, Error);
  }
}

}  // namespace
}  // namespace holdfast
