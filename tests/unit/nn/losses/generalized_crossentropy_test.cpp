#include "holdfast/nn/generalized_crossentropy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "holdfast/base/error.h"
#include "support/thrown.h"

namespace holdfast {
namespace {

using testing::HasSubstr;
using Numbers = std::vector<float>;

TEST(GeneralizedCrossentropy, IsBetweenALogarithmAndADistance) {
  const Numbers outputs = {0.25F, 0.75F}, target = {0};

  EXPECT_NEAR(losses::CategoricalGeneralizedCrossEntropy({.q = 0.001F}).evaluate(outputs, target, 1, 1, {}),
              -std::log(0.25), 2e-3);
  EXPECT_NEAR(losses::CategoricalGeneralizedCrossEntropy({.q = 0.999F}).evaluate(outputs, target, 1, 1, {}), 0.75,
              1e-3);
}

TEST(GeneralizedCrossentropy, StaysFiniteWhereTheTargetHasNoProbability) {
  const losses::CategoricalGeneralizedCrossEntropy loss({.q = 0.5F});
  Numbers gradient(2, 99);

  EXPECT_NEAR(loss.evaluate(Numbers{0, 1}, Numbers{0}, 1, 1, gradient), 2, 1e-6);
  EXPECT_EQ(gradient[0], 0.0F);
  EXPECT_NEAR(loss.evaluate(Numbers{0.5F, 0.5F}, Numbers{7}, 1, 1, {}), 2, 1e-6) << "no class";
}

TEST(GeneralizedCrossentropy, LetsANanShow) {
  const Numbers outputs = {std::numeric_limits<float>::quiet_NaN(), 1};

  EXPECT_TRUE(std::isnan(losses::CategoricalGeneralizedCrossEntropy().evaluate(outputs, Numbers{0}, 1, 1, {})));
}

TEST(GeneralizedCrossentropy, RefusesOptionsAndLayersThatDoNotFit) {
  for (const float q : {0.0F, 1.0F, -1.0F, std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_THAT(sentence_thrown_by([&] { losses::CategoricalGeneralizedCrossEntropy({.q = q}); }),
                HasSubstr("categorical_generalized_cross_entropy was given .q = "));
  }
  EXPECT_THAT(sentence_thrown_by(
                  [] { losses::CategoricalGeneralizedCrossEntropy().check_last_activation(Activation::linear); }),
              HasSubstr("softmax"));
  EXPECT_THAT(sentence_thrown_by([] { losses::CategoricalGeneralizedCrossEntropy().target_shape(Shape{}); }),
              HasSubstr("the classes"));
}

}  // namespace
}  // namespace holdfast
