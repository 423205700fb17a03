// What Ftrl does at its limits, and the options that it refuses. Its steps are compared with Keras's in
// keras_cases_test.cpp.

#include "holdfast/optim/ftrl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

using testing::Each;
using testing::ElementsAre;

std::vector<float> after_a_step(const Ftrl& optimizer, std::vector<float> parameters,
                                const std::vector<float>& gradients) {
  std::vector<float> accumulator(parameters.size(), optimizer.initial_value_of_slot(0)), linear(parameters.size());
  const std::vector<std::span<float>> slots = {accumulator, linear};
  optimizer.update(1, parameters, gradients, slots);
  return parameters;
}

TEST(Ftrl, SetsParametersOfSmallSumsToZero) {
  // The sums are g - 0.5 w for an accumulator that does not begin with 0.
  const Ftrl optimizer{{.learning_rate = 1, .l1_regularization_strength = 1}};

  const std::vector<float> moved = after_a_step(optimizer, {0, 0, 0}, {0.5F, -1, 3});

  EXPECT_EQ(moved[0], 0);
  EXPECT_EQ(moved[1], 0);
  EXPECT_LT(moved[2], 0);
}

TEST(Ftrl, LeavesParametersAloneWhereItWouldDivideByZero) {
  EXPECT_THAT(after_a_step(Ftrl{{.initial_accumulator_value = 0}}, {3, -2}, {0, 0}), ElementsAre(3, -2));
  EXPECT_THAT(after_a_step(Ftrl{{.learning_rate = 0, .beta = 1}}, {3, 3}, {1, -1}), Each(3));
}

TEST(Ftrl, BeginsWithTheAccumulatorOfItsOptions) {
  EXPECT_THAT(Ftrl{}.slot_names(), ElementsAre("accumulator", "linear"));
  EXPECT_EQ(Ftrl{}.initial_value_of_slot(0), 0.1F);
  EXPECT_EQ(Ftrl{}.initial_value_of_slot(1), 0);
}

TEST(Ftrl, HasTheDefaultsOfKeras) {
  EXPECT_EQ(Ftrl{}.configuration(),
            R"({"kind":"ftrl","learning_rate":0.001,"learning_rate_power":-0.5,"initial_accumulator_value":0.1,)"
            R"("l1_regularization_strength":0,"l2_regularization_strength":0,)"
            R"("l2_shrinkage_regularization_strength":0,"beta":0,"weight_decay":0})");
}

TEST(Ftrl, RefusesOptionsOutOfTheirRange) {
  for (const FtrlOptions& options :
       {FtrlOptions{.learning_rate = -0.1F}, FtrlOptions{.learning_rate_power = 0.5F},
        FtrlOptions{.initial_accumulator_value = -1}, FtrlOptions{.l1_regularization_strength = -1},
        FtrlOptions{.l2_regularization_strength = std::numeric_limits<float>::quiet_NaN()},
        FtrlOptions{.l2_shrinkage_regularization_strength = -1}, FtrlOptions{.beta = -1},
        FtrlOptions{.weight_decay = -0.1F}, FtrlOptions{.clip_norm = 0}, FtrlOptions{.ema_momentum = 1.5F}}) {
    EXPECT_THROW(Ftrl{options}, Error);
  }
}

}  // namespace
}  // namespace holdfast
