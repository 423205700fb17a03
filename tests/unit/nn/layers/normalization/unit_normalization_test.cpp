// What UnitNormalization refuses and leaves alone. Its numbers are compared with Keras's in reference_cases_test.cpp.

#include "holdfast/nn/unit_normalization.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/nn/sequential.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(UnitNormalization, LeavesASampleOfZerosAsItIs) {
  Sequential model{Input{3}, UnitNormalization{}};
  model.set_weights({}, {});

  EXPECT_THAT(model.predict(Tensor({2, 3}, {0, 0, 0, 3, 0, 4})).values(),
              ElementsAre(0, 0, 0, testing::FloatEq(0.6F), 0, testing::FloatEq(0.8F)));
}

TEST(UnitNormalization, RefusesAxesThatAreNotThere) {
  EXPECT_THAT(refusal([] { UnitNormalization{{.axes = {}}}; }), HasSubstr("needs an axis at least"));
  EXPECT_NE(refusal([] { Sequential{Input{3}, UnitNormalization{{.axes = {1}}}}; }), "");
}

}  // namespace
}  // namespace holdfast
