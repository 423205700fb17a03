// Adadelta against its formula in double, and the options that it refuses.

#include "holdfast/optim/adadelta.h"

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

// d is at most sqrt(e + epsilon) / sqrt(0.05) for |g| <= 1, and grows slowly from sqrt(epsilon) = 3e-4 on. Twenty
// roundings of running means and ten of the formula enter it, and errors of d enter e again.
TEST(Adadelta, FollowsItsFormulaForAHundredSteps) {
  for (const AdadeltaOptions& options :
       {AdadeltaOptions{.learning_rate = 1}, AdadeltaOptions{.learning_rate = 0.5F, .weight_decay = 0.1F},
        AdadeltaOptions{.learning_rate = 1, .rho = 0.5F, .epsilon = 1e-4F}}) {
    const Adadelta optimizer{options};
    const double rate = options.learning_rate.of_update(1);
    double largest = 0;

    const Deviation deviation =
        largest_deviation(optimizer, [&](std::int64_t, double gradient, ReferenceElement& element) {
          const double rho = options.rho;
          double& gradients = element.slots[0];
          double& changes = element.slots[1];
          gradients = rho * gradients + (1 - rho) * gradient * gradient;
          const double change =
              gradient * std::sqrt(changes + options.epsilon) / std::sqrt(gradients + options.epsilon);
          changes = rho * changes + (1 - rho) * change * change;
          largest = std::max(largest, std::abs(change));
          element.parameter = element.parameter * (1.0 - rate * options.weight_decay) - rate * change;
        });

    EXPECT_LT(deviation.parameter, 100 * kHalfUlp * (2 * deviation.largest_parameter + 200 * largest))
        << optimizer.configuration();
  }
}

TEST(Adadelta, KeepsTwoSlots) {
  EXPECT_THAT(Adadelta{}.slot_names(), ElementsAre("accumulated_grad", "accumulated_delta_var"));
}

TEST(Adadelta, HasTheDefaultsOfKeras) {
  EXPECT_EQ(Adadelta{}.configuration(),
            R"({"kind":"adadelta","learning_rate":0.001,"rho":0.95,"epsilon":1e-07,"weight_decay":0})");
}

TEST(Adadelta, RefusesOptionsOutOfTheirRange) {
  constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();
  for (const AdadeltaOptions& options :
       {AdadeltaOptions{.learning_rate = -0.1F}, AdadeltaOptions{.learning_rate = kNoNumber},
        AdadeltaOptions{.weight_decay = -0.1F}, AdadeltaOptions{.weight_decay = kNoNumber},
        AdadeltaOptions{.clip_norm = 0}, AdadeltaOptions{.clip_value = 1.0F, .clip_norm = 1.0F},
        AdadeltaOptions{.rho = 1}, AdadeltaOptions{.rho = -0.1F}, AdadeltaOptions{.epsilon = 0}}) {
    EXPECT_THROW(Adadelta{options}, Error) << options.learning_rate.of_update(1) << ", " << options.weight_decay;
  }
}

}  // namespace
}  // namespace holdfast
