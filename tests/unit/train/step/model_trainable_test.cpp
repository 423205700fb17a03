// What a run is compared by: the arithmetic of a model with its optimizer. How a model trains is tested by steps and
// runs.

#include "train/step/model_trainable.h"

#include <gtest/gtest.h>

#include "holdfast/holdfast.h"

namespace holdfast {
namespace {

std::string arithmetic_with(const Optimizer& optimizer) {
  ModelTrainable trainable(Sequential{Input{4}, Dense{1}}, optimizer, {MeanSquaredError{}}, {});
  trainable.prepare({});
  return trainable.arithmetic();
}

// A run of an earlier release had other bits, and must not go on with these unknowingly.
TEST(ModelTrainable, NamesAnOrderOfSumsOfItsOptimizerThatIsNotTheFirstOne) {
  const std::string of_adam = arithmetic_with(Adam{});

  EXPECT_TRUE(of_adam.ends_with("per shard")) << of_adam;
  EXPECT_EQ(arithmetic_with(Lamb{}), of_adam + ", LAMB's sums in lanes");
}

}  // namespace
}  // namespace holdfast
