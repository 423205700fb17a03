#include "keras_files/keras_optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::format {
namespace {

using ::testing::ElementsAre;

const KerasShape kIteration = {"0", DType::i32, {}};
const KerasShape kRate = {"1", DType::f32, {}};
const KerasShape kKernel = {"dense/kernel", DType::f32, {2, 3}};
const KerasShape kBias = {"dense/bias", DType::f32, {3}};
const std::vector<KerasShape> kTrainables = {kKernel, kBias};

KerasOptimizer optimizer(const std::string& class_name, Json config = Json::object(), bool is_keras_3 = true) {
  return {.config = {{"class_name", class_name}, {"config", std::move(config)}}, .is_keras_3 = is_keras_3};
}

TEST(KerasOptimizer, GoesFromVariableToVariableInKeras3) {
  const std::vector<KerasShape> variables = {kIteration, kRate, kKernel, kKernel, kBias, kBias};

  EXPECT_THAT(keras_optimizer_names(optimizer("Adam"), variables, kTrainables),
              ElementsAre("iteration", "learning_rate", "momentum/dense/kernel", "velocity/dense/kernel",
                          "momentum/dense/bias", "velocity/dense/bias"));
}

TEST(KerasOptimizer, GoesFromSlotToSlotBeforeKeras3) {
  const std::vector<KerasShape> variables = {kIteration, kKernel, kBias, kKernel, kBias};

  EXPECT_THAT(keras_optimizer_names(optimizer("Adam", {}, false), variables, kTrainables),
              ElementsAre("iteration", "momentum/dense/kernel", "momentum/dense/bias", "velocity/dense/kernel",
                          "velocity/dense/bias"));
}

TEST(KerasOptimizer, HasNoLearningRateVariableWithASchedule) {
  const std::vector<KerasShape> variables = {kIteration, kRate};
  const std::vector<KerasShape> scalar = {{"scale", DType::f32, {}}};
  const Json schedule = {{"momentum", 0.9}, {"learning_rate", {{"class_name", "ExponentialDecay"}}}};

  EXPECT_THAT(keras_optimizer_names(optimizer("SGD", schedule), variables, scalar),
              ElementsAre("iteration", "momentum/scale"));
}

TEST(KerasOptimizer, HasFactorsOfAdafactorInTheirShapes) {
  const KerasShape scalar = {"", DType::i32, {}};
  const KerasShape rows = {"", DType::f32, {2}};
  const std::vector<KerasShape> variables = {kIteration, kRate, rows, kBias, kKernel, scalar, scalar, kBias};

  EXPECT_THAT(keras_optimizer_names(optimizer("Adafactor"), variables, kTrainables),
              ElementsAre("iteration", "learning_rate", "r/dense/kernel", "c/dense/kernel", "velocity/dense/kernel",
                          "r/dense/bias", "c/dense/bias", "velocity/dense/bias"));
}

TEST(KerasOptimizer, NumbersWhatDoesNotFit) {
  const std::vector<KerasShape> variables = {kIteration, kRate, kKernel, kKernel, kBias};

  for (const auto& other : {optimizer("Adam"), optimizer("MyOptimizer"), KerasOptimizer{}}) {
    EXPECT_THAT(keras_optimizer_names(other, variables, kTrainables),
                ElementsAre("iteration", "learning_rate", "2", "3", "4"));
  }
  EXPECT_THAT(keras_optimizer_names(optimizer("Adam"), variables, {}),
              ElementsAre("iteration", "learning_rate", "2", "3", "4"));
}

TEST(KerasOptimizer, NumbersSlotsOfOtherShapes) {
  const std::vector<KerasShape> variables = {kIteration, kRate, kBias, kKernel};

  EXPECT_THAT(keras_optimizer_names(optimizer("Lion"), variables, kTrainables),
              ElementsAre("iteration", "learning_rate", "2", "3"));
}

TEST(KerasOptimizer, HasNoNamesForAnEmptyList) {
  EXPECT_TRUE(keras_optimizer_names(optimizer("Adam"), {}, {}).empty());
}

}  // namespace
}  // namespace holdfast::format
