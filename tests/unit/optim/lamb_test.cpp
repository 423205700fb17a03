// LAMB's norms, its slots, and the options that it refuses. Its steps are compared with Keras's in
// keras_cases_test.cpp.

#include "holdfast/optim/lamb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

using testing::ElementsAre;

std::vector<float> after_a_step(std::vector<float> parameters, const std::vector<float>& gradients) {
  std::vector<float> momentum(parameters.size()), velocity(parameters.size());
  const std::vector<std::span<float>> slots = {momentum, velocity};
  Lamb{{.learning_rate = 0.25F}}.update(1, parameters, gradients, slots);
  return parameters;
}

TEST(Lamb, MovesAnArrayByTheRateOfItsNorm) {
  // The first direction is the signs of the gradients, so its norm is 2 for four elements.
  const std::vector<float> moved = after_a_step({3, 0, 4, 0}, {1, -1, 2, -0.5F});

  const float step = 0.25F * 5 / 2;
  for (const auto& [found, expected] : {std::pair{moved[0], 3 - step}, {moved[1], step}, {moved[2], 4 - step}}) {
    EXPECT_NEAR(found, expected, 1e-6);
  }
}

TEST(Lamb, TakesTheLearningRateWhereANormIsZero) {
  EXPECT_NEAR(after_a_step({0, 0}, {1, 1})[0], -0.25F, 1e-6);
  EXPECT_EQ(after_a_step({1, 2}, {0, 0}), (std::vector<float>{1, 2}));
}

TEST(Lamb, TakesNoNoticeOfPadding) {
  const std::vector<float> padded = after_a_step({3, 4, 0, 0}, {1, 2, 0, 0});

  EXPECT_EQ(std::vector<float>(padded.begin(), padded.begin() + 2), after_a_step({3, 4}, {1, 2}));
  EXPECT_EQ(padded[3], 0);
}

TEST(Lamb, KeepsTwoSlots) {
  EXPECT_THAT(Lamb{}.slot_names(), ElementsAre("momentum", "velocity"));
}

TEST(Lamb, HasTheDefaultsOfKeras) {
  EXPECT_EQ(Lamb{}.configuration(),
            R"({"kind":"lamb","learning_rate":0.001,"beta_1":0.9,"beta_2":0.999,"epsilon":1e-07,"weight_decay":0})");
}

TEST(Lamb, RefusesOptionsOutOfTheirRange) {
  constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();
  for (const LambOptions& options :
       {LambOptions{.learning_rate = -0.1F}, LambOptions{.weight_decay = kNoNumber}, LambOptions{.clip_norm = 0},
        LambOptions{.beta_1 = 1}, LambOptions{.beta_2 = -0.1F}, LambOptions{.epsilon = 0},
        LambOptions{.ema_momentum = 1.5F}, LambOptions{.ema_overwrite_frequency = -1}}) {
    try {
      const Lamb optimizer{options};
      ADD_FAILURE() << "took " << optimizer.configuration();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    }
  }
}

}  // namespace
}  // namespace holdfast
