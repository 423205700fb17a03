// Lion against its formula in double, and the options that it refuses.

#include "holdfast/optim/lion.h"

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

// A sign changes where the sum is zero but for rounding, so the reference takes the float's side there: no sum of these
// gradients is that small. A step rounds the parameter twice.
TEST(Lion, FollowsItsFormulaForAHundredSteps) {
  constexpr float kRate = 0.01F;
  for (const LionOptions& options :
       {LionOptions{.learning_rate = kRate},
        LionOptions{.learning_rate = kRate, .beta_1 = 0.5F, .beta_2 = 0.75F, .weight_decay = 0.1F}}) {
    const Lion optimizer{options};
    double smallest = 1;

    const Deviation deviation =
        largest_deviation(optimizer, [&](std::int64_t, double gradient, ReferenceElement& element) {
          double& momentum = element.slots[0];
          const double sum = momentum * options.beta_1 + gradient * (1.0 - options.beta_1);
          smallest = std::min(smallest, std::abs(sum));
          momentum = momentum * options.beta_2 + gradient * (1.0 - options.beta_2);
          element.parameter = element.parameter * (1.0 - static_cast<double>(kRate) * options.weight_decay) -
                              (sum > 0 ? kRate : -kRate);
        });

    ASSERT_GT(smallest, 100 * kHalfUlp);
    EXPECT_LT(deviation.parameter, 100 * kHalfUlp * (2 * deviation.largest_parameter + 2 * kRate))
        << optimizer.configuration();
  }
}

TEST(Lion, LeavesAParameterWithoutGradients) {
  std::vector<float> parameters = {1.0F};
  std::vector<float> momentum(1);
  const std::vector<std::span<float>> slots = {momentum};

  Lion{}.update(1, parameters, std::vector<float>{0.0F}, slots);

  EXPECT_EQ(parameters[0], 1.0F);
}

TEST(Lion, KeepsASlot) {
  EXPECT_THAT(Lion{}.slot_names(), ElementsAre("momentum"));
}

TEST(Lion, HasTheDefaultsOfKeras) {
  EXPECT_EQ(Lion{}.configuration(),
            R"({"kind":"lion","learning_rate":0.001,"beta_1":0.9,"beta_2":0.99,"weight_decay":0})");
}

TEST(Lion, RefusesOptionsOutOfTheirRange) {
  constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();
  for (const LionOptions& options :
       {LionOptions{.learning_rate = -0.1F}, LionOptions{.learning_rate = kNoNumber},
        LionOptions{.weight_decay = -0.1F}, LionOptions{.weight_decay = kNoNumber}, LionOptions{.clip_norm = 0},
        LionOptions{.clip_value = 1.0F, .clip_norm = 1.0F}, LionOptions{.beta_1 = 0}, LionOptions{.beta_1 = 1.1F},
        LionOptions{.beta_2 = 1}, LionOptions{.beta_2 = kNoNumber}}) {
    EXPECT_THROW(Lion{options}, Error) << options.learning_rate.of_update(1) << ", " << options.weight_decay;
  }
}

}  // namespace
}  // namespace holdfast
