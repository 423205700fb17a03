// The windows of adaptive pooling, and what the layers refuse. Numbers are compared with Keras's in
// reference_cases_test.cpp.

#include "holdfast/nn/adaptive_pooling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/nn/sequential.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<float> pooled(Sequential model, const Tensor& input) {
  // No layer has weights, but a model must have been given them.
  model.set_weights({}, {});
  return model.predict(input).values();
}

const Tensor kSteps({1, 5, 1}, {1, 2, 3, 4, 5});

TEST(AdaptivePooling, HasWindowsThatOverlapWhereTheyDoNotFit) {
  // Elements 0 and 1, 1 to 3, 3 and 4.
  EXPECT_THAT(pooled(Sequential{Input{5, 1}, AdaptiveAveragePooling{{3}}}, kSteps), ElementsAre(1.5F, 3, 4.5F));
  EXPECT_THAT(pooled(Sequential{Input{5, 1}, AdaptiveMaxPooling{{3}}}, kSteps), ElementsAre(2, 4, 5));
}

TEST(AdaptivePooling, RepeatsElementsWhereThereAreFewerThanAskedFor) {
  EXPECT_THAT(pooled(Sequential{Input{2, 1}, AdaptiveMaxPooling{{4}}}, Tensor({1, 2, 1}, {1, 2})),
              ElementsAre(1, 1, 2, 2));
}

TEST(AdaptivePooling, GivesTheShapeThatWasAskedFor) {
  EXPECT_EQ((Sequential{Input{9, 8, 3}, AdaptiveAveragePooling{{3, 4}}}.output_shape()), (Shape{3, 4, 3}));
  EXPECT_EQ((Sequential{Input{9, 8, 3}, AdaptiveAveragePooling{{2, 5}}}.output_shape()), (Shape{2, 5, 3}));
  EXPECT_EQ((Sequential{Input{4, 4, 4, 1}, AdaptiveMaxPooling{{2, 3, 1}}}.output_shape()), (Shape{2, 3, 1, 1}));
}

TEST(AdaptivePooling, RefusesSizesThatDoNotFit) {
  EXPECT_THAT(refusal([] { AdaptiveAveragePooling{{}}; }), HasSubstr("needs 1 to 3 numbers of positions, not 0"));
  EXPECT_NE(refusal([] { AdaptiveMaxPooling{{2, 0}}; }), "");
  EXPECT_THAT(refusal([] {
                Sequential{Input{9, 3}, AdaptiveMaxPooling{{2, 2}}};
              }),
              HasSubstr("is for an input of 3 axes"));
}

// Each such window is an operation, and a file of one number could exhaust the memory.
TEST(AdaptivePooling, BoundsTheNumberOfDifferentWindows) {
  EXPECT_THAT(
      refusal([] {
        Sequential{Input{3, 1}, AdaptiveMaxPooling{{4097}}};
      }),
      HasSubstr("it makes 4097 positions of 3, in windows of different sizes, and such windows are at most 4096"));
  EXPECT_EQ((Sequential{Input{10'000, 1}, AdaptiveMaxPooling{{5000}}}.output_shape()), (Shape{5000, 1}));
  EXPECT_EQ((Sequential{Input{5000, 3, 1}, AdaptiveAveragePooling{{5000, 2}}}.output_shape()), (Shape{5000, 2, 1}));
}

}  // namespace
}  // namespace holdfast
