// Adamax against its formula in double, and the options that it refuses.

#include "holdfast/optim/adamax.h"

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

// m / u is at most 1 / (1 - beta_1) in the first steps, before the bias correction of that size. m has the errors of
// ten steps, and u that of a rounding in each step since the largest gradient.
TEST(Adamax, FollowsItsFormulaForAHundredSteps) {
  constexpr float kRate = 0.01F;
  for (const AdamaxOptions& options :
       {AdamaxOptions{.learning_rate = kRate},
        AdamaxOptions{.learning_rate = kRate, .beta_1 = 0.5F, .beta_2 = 0.9F, .weight_decay = 0.1F}}) {
    const Adamax optimizer{options};

    const Deviation deviation =
        largest_deviation(optimizer, [&](std::int64_t step, double gradient, ReferenceElement& element) {
          double& momentum = element.slots[0];
          double& norm = element.slots[1];
          momentum += (gradient - momentum) * (1.0 - options.beta_1);
          norm = std::max(norm * options.beta_2, std::abs(gradient));
          const double correction = 1.0 - std::pow(options.beta_1, static_cast<double>(step));
          element.parameter = element.parameter * (1.0 - static_cast<double>(kRate) * options.weight_decay) -
                              momentum * kRate / correction / (norm + options.epsilon);
        });

    EXPECT_LT(deviation.parameter, 100 * kHalfUlp * (2 * deviation.largest_parameter + 150 * kRate))
        << optimizer.configuration();
  }
}

TEST(Adamax, KeepsTwoSlots) {
  EXPECT_THAT(Adamax{}.slot_names(), ElementsAre("momentum", "norm"));
}

TEST(Adamax, HasTheDefaultsOfKeras) {
  EXPECT_EQ(Adamax{}.configuration(), R"({"kind":"adamax","learning_rate":0.001,"beta_1":0.9,"beta_2":0.999,)"
                                      R"("epsilon":1e-07,"weight_decay":0})");
}

TEST(Adamax, RefusesOptionsOutOfTheirRange) {
  constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();
  for (const AdamaxOptions& options :
       {AdamaxOptions{.learning_rate = -0.1F}, AdamaxOptions{.learning_rate = kNoNumber},
        AdamaxOptions{.weight_decay = -0.1F}, AdamaxOptions{.weight_decay = kNoNumber}, AdamaxOptions{.clip_norm = 0},
        AdamaxOptions{.clip_value = 1.0F, .clip_norm = 1.0F}, AdamaxOptions{.beta_1 = 1},
        AdamaxOptions{.beta_1 = -0.1F}, AdamaxOptions{.beta_2 = 1}, AdamaxOptions{.beta_2 = kNoNumber},
        AdamaxOptions{.epsilon = 0}}) {
    EXPECT_THROW(Adamax{options}, Error) << options.learning_rate.of_update(1) << ", " << options.weight_decay;
  }
}

}  // namespace
}  // namespace holdfast
