// Adagrad against its formula in double, and the options that it refuses.

#include "holdfast/optim/adagrad.h"

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

// Each step rounds the parameter twice, and a change of at most lr / sqrt(0.1) as often as the formula has operations.
// The accumulator grows, and is rounded once in each of a hundred steps.
TEST(Adagrad, FollowsItsFormulaForAHundredSteps) {
  constexpr float kRate = 0.1F;
  for (const AdagradOptions& options :
       {AdagradOptions{.learning_rate = kRate},
        AdagradOptions{.learning_rate = kRate, .initial_accumulator_value = 0.5F, .weight_decay = 0.1F}}) {
    const Adagrad optimizer{options};

    const Deviation deviation =
        largest_deviation(optimizer, [&](std::int64_t, double gradient, ReferenceElement& element) {
          element.slots[0] += gradient * gradient;
          element.parameter = element.parameter * (1.0 - static_cast<double>(kRate) * options.weight_decay) -
                              kRate * gradient / std::sqrt(element.slots[0] + options.epsilon);
        });

    EXPECT_LT(deviation.parameter, 100 * kHalfUlp * (2 * deviation.largest_parameter + 110 * 3.2 * kRate))
        << optimizer.configuration();
  }
}

TEST(Adagrad, BeginsWithItsInitialAccumulator) {
  EXPECT_EQ(Adagrad{}.initial_value_of_slot(0), 0.1F);
  EXPECT_EQ(Adagrad{{.initial_accumulator_value = 0}}.initial_value_of_slot(0), 0);
  EXPECT_THAT(Adagrad{}.slot_names(), ElementsAre("accumulator"));
}

TEST(Adagrad, HasTheDefaultsOfKeras) {
  EXPECT_EQ(Adagrad{}.configuration(), R"({"kind":"adagrad","learning_rate":0.001,"initial_accumulator_value":0.1,)"
                                       R"("epsilon":1e-07,"weight_decay":0})");
}

TEST(Adagrad, RefusesOptionsOutOfTheirRange) {
  constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();
  for (const AdagradOptions& options :
       {AdagradOptions{.learning_rate = -0.1F}, AdagradOptions{.learning_rate = kNoNumber},
        AdagradOptions{.weight_decay = -0.1F}, AdagradOptions{.weight_decay = kNoNumber},
        AdagradOptions{.clip_norm = 0}, AdagradOptions{.clip_value = 1.0F, .clip_norm = 1.0F},
        AdagradOptions{.initial_accumulator_value = -0.1F}, AdagradOptions{.initial_accumulator_value = kNoNumber},
        AdagradOptions{.epsilon = 0}}) {
    EXPECT_THROW(Adagrad{options}, Error) << options.learning_rate.of_update(1) << ", " << options.weight_decay;
  }
}

}  // namespace
}  // namespace holdfast
