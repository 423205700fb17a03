// SGD against its formulas in double, and the options that it refuses.

#include "holdfast/optim/sgd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "holdfast/base/error.h"
#include "unit/optim/support/training_run.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(SGD, MovesAgainstTheGradient) {
  std::vector<float> parameters = {1.0F, -2.0F};
  const std::vector<float> gradients = {0.5F, 4.0F};

  SGD(0.25F).update(1, parameters, gradients, {});

  EXPECT_THAT(parameters, ElementsAre(0.875F, -3.0F));
}

TEST(SGD, GathersSpeedWithMomentum) {
  std::vector<float> parameters = {1.0F};
  std::vector<float> momentum = {0.0F};
  const std::vector<std::span<float>> slots = {momentum};
  const SGD sgd{{.learning_rate = 0.5F, .momentum = 0.5F}};

  sgd.update(1, parameters, std::vector<float>{1.0F}, slots);  // velocity -0.5
  sgd.update(2, parameters, std::vector<float>{1.0F}, slots);  // velocity -0.75

  EXPECT_THAT(momentum, ElementsAre(-0.75F));
  EXPECT_THAT(parameters, ElementsAre(-0.25F));
}

TEST(SGD, LooksAheadWithNesterovMomentum) {
  std::vector<float> parameters = {1.0F};
  std::vector<float> momentum = {0.0F};
  const std::vector<std::span<float>> slots = {momentum};
  const SGD sgd{{.learning_rate = 0.5F, .momentum = 0.5F, .nesterov = true}};

  sgd.update(1, parameters, std::vector<float>{1.0F}, slots);

  EXPECT_THAT(momentum, ElementsAre(-0.5F));
  EXPECT_THAT(parameters, ElementsAre(0.25F));  // 1 + 0.5 * -0.5 - 0.5
}

// Bounds for 100 steps with |g| <= 1, lr = 0.05, m = 0.9, so |v| <= lr / (1 - m) = 0.5. A step rounds the parameter
// (half an ulp of at most |w|) and at most four products and sums of the size of |v|; errors of v shrink by m a step,
// so they add up to at most 1 / (1 - m) = 10 times those of one step, and enter w once a step.
double tolerance(const Deviation& deviation) {
  return 100 * kHalfUlp * (deviation.largest_parameter + 4 * 0.5 * (1 + 10));
}

TEST(SGD, FollowsItsFormulaForAHundredSteps) {
  const Deviation deviation = largest_deviation(
      SGD{0.05F},
      [](std::int64_t, double gradient, ReferenceElement& element) { element.parameter -= 0.05F * gradient; });

  EXPECT_LT(deviation.parameter, tolerance(deviation));
}

TEST(SGD, FollowsTheFormulaOfMomentumForAHundredSteps) {
  const Deviation deviation = largest_deviation(SGD{{.learning_rate = 0.05F, .momentum = 0.9F}},
                                                [](std::int64_t, double gradient, ReferenceElement& element) {
                                                  element.slots[0] = element.slots[0] * 0.9F - 0.05F * gradient;
                                                  element.parameter += element.slots[0];
                                                });

  EXPECT_LT(deviation.parameter, tolerance(deviation));
}

TEST(SGD, FollowsTheFormulaOfNesterovForAHundredSteps) {
  const Deviation deviation = largest_deviation(SGD{{.learning_rate = 0.05F, .momentum = 0.9F, .nesterov = true}},
                                                [](std::int64_t, double gradient, ReferenceElement& element) {
                                                  element.slots[0] = element.slots[0] * 0.9F - 0.05F * gradient;
                                                  element.parameter += element.slots[0] * 0.9F - 0.05F * gradient;
                                                });

  EXPECT_LT(deviation.parameter, tolerance(deviation));
}

TEST(SGD, NeedsASlotForMomentumOnly) {
  EXPECT_THAT(SGD{}.slot_names(), IsEmpty());
  EXPECT_THAT(SGD{{.nesterov = true}}.slot_names(), IsEmpty());
  EXPECT_THAT(SGD{{.momentum = 0.9F}}.slot_names(), ElementsAre("momentum"));
}

TEST(SGD, HasTheDefaultsOfKeras) {
  EXPECT_EQ(SGD{}.configuration(), R"({"kind":"sgd","learning_rate":0.01,"momentum":0,"nesterov":false})");
}

TEST(SGD, RefusesOptionsOutOfTheirRange) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const SGDOptions& options :
       {SGDOptions{.learning_rate = -0.1F}, SGDOptions{.learning_rate = kNan},
        SGDOptions{.learning_rate = std::numeric_limits<float>::infinity()}, SGDOptions{.momentum = -0.1F},
        SGDOptions{.momentum = 1.1F}, SGDOptions{.momentum = kNan}, SGDOptions{.clip_value = 0},
        SGDOptions{.clip_norm = -1.0F}, SGDOptions{.global_clip_norm = kNan}}) {
    EXPECT_THROW(SGD{options}, Error) << options.learning_rate.of_update(1) << ", " << options.momentum;
  }
}

TEST(SGD, ClipsInOneWayOnly) {
  try {
    const SGD sgd{{.clip_value = 1.0F, .global_clip_norm = 1.0F}};
    FAIL() << "took two: " << sgd.configuration();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("sgd: clip_value and global_clip_norm exclude each other"));
  }
}

TEST(SGD, NamesTheRefusedOption) {
  try {
    const SGD sgd{{.momentum = 2.0F}};
    FAIL() << "took a momentum of 2: " << sgd.configuration();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("sgd: momentum is 2, but must be finite and in [0, 1]"));
  }
}

}  // namespace
}  // namespace holdfast
