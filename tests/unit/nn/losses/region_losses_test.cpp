#include "holdfast/nn/region_losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "support/thrown.h"

namespace holdfast {
namespace {

using testing::Each;
using testing::HasSubstr;
using Numbers = std::vector<float>;

TEST(Dice, IsOneSampleAfterTheOther) {
  const losses::Dice dice;
  const Numbers outputs = {1, 1, 0, 0, 0.5F, 0, 0, 0}, targets = {1, 1, 0, 0, 0, 1, 0, 0};

  EXPECT_NEAR(dice.evaluate(outputs, targets, 2, 1, {}), 0 + 1, 1e-6) << "the first fits, the second does not";
}

TEST(Dice, IsOneWithASmoothGradientForTwoEmptyRegions) {
  const losses::Dice dice;
  Numbers gradient(3, 99);

  EXPECT_EQ(dice.evaluate(Numbers(3), Numbers(3), 1, 1, gradient), 1.0F);
  EXPECT_THAT(gradient, Each(0.0F));
}

TEST(Tversky, WeighsMissesByAlphaAndFalseAlarmsByBeta) {
  const Numbers half = {1, 0}, both = {1, 1};

  EXPECT_NEAR(losses::Tversky({.alpha = 3, .beta = 0}).evaluate(half, both, 1, 1, {}), 0.75, 1e-6);
  EXPECT_NEAR(losses::Tversky({.alpha = 3, .beta = 0}).evaluate(both, half, 1, 1, {}), 0, 1e-6);
  EXPECT_NEAR(losses::Tversky({.alpha = 0, .beta = 1}).evaluate(both, half, 1, 1, {}), 0.5, 1e-6);
}

TEST(RegionLosses, RefuseOptionsOutOfRange) {
  EXPECT_THAT(sentence_thrown_by([] { losses::Tversky({.alpha = -1}); }),
              HasSubstr("tversky was given .alpha = -1; it is a finite number from 0 on"));
  EXPECT_THAT(sentence_thrown_by([] { losses::Tversky({.beta = std::numeric_limits<float>::quiet_NaN()}); }),
              HasSubstr(".beta = nan"));
  EXPECT_THAT(sentence_thrown_by([] { losses::Dice({.axis = {1}}).evaluate(Numbers(3), Numbers(3), 1, 1, {}); }),
              HasSubstr("axis 1"));
}

TEST(RegionLosses, WriteTheirAxes) {
  EXPECT_EQ(losses::Dice({.axis = {0, 1}}).configuration(), R"({"kind":"dice","axis":[0,1]})");
  EXPECT_EQ(losses::Tversky().configuration(), R"({"kind":"tversky","alpha":0.5,"beta":0.5,"axis":[]})");
}

}  // namespace
}  // namespace holdfast
