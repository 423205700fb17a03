#include "keras/keras_optimizer_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "unit/exchange/support/keras_trees.h"

namespace holdfast::format {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Parsed again, as from a file.
Json metadata_of(const Json& optimizer, std::int64_t step = 7) {
  return Json::parse(Json{{"step", step}, {"configuration", {{"optimizer", optimizer}}}}.dump());
}

// "momentum 1" for the momentum of variable 1.
std::vector<std::string> order_of(const Json& optimizer, std::size_t variables) {
  std::vector<std::string> order;
  const std::vector<TrainableVariable> all(variables, {.array = "d/kernel", .shape = {2, 3}});
  for (const auto& [variable, slot] : slots_in_keras_order(keras_optimizer_state(metadata_of(optimizer)), all)) {
    order.push_back(std::string(slot.keras) + " " + std::to_string(variable));
  }
  return order;
}

float number_of(const NamedArray& array) {
  float number = 0;
  EXPECT_EQ(array.bytes.size(), sizeof(number));
  EXPECT_EQ(array.dtype, DType::f32);
  EXPECT_THAT(array.shape, IsEmpty());
  std::memcpy(&number, array.bytes.data(), sizeof(number));
  return number;
}

std::vector<float> initial_values(const std::string& array, const Json& optimizer) {
  std::vector<float> values(3, -1);
  const std::vector<std::byte> bytes = initial_slot_bytes(testing::floats(array, {3}), {}, metadata_of(optimizer));
  EXPECT_EQ(bytes.size(), values.size() * sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(KerasOptimizerState, VisitsAVariableForAllSlotsOfAPass) {
  EXPECT_THAT(order_of({{"kind", "adadelta"}}, 2), ElementsAre("accumulated_grad 0", "accumulated_delta_var 0",
                                                               "accumulated_grad 1", "accumulated_delta_var 1"));
}

TEST(KerasOptimizerState, VisitsAllVariablesForEachPass) {
  EXPECT_THAT(
      order_of({{"kind", "rmsprop"}, {"momentum", 0.5}, {"centered", true}}, 2),
      ElementsAre("velocity 0", "velocity 1", "momentum 0", "momentum 1", "average_gradient 0", "average_gradient 1"));
}

TEST(KerasOptimizerState, HasVelocitiesOfMuonForTheArraysOfAdam) {
  const KerasOptimizerState state =
      keras_optimizer_state(metadata_of({{"kind", "muon"}, {"adam_arrays", Json::array({"out"})}}));
  const std::vector<TrainableVariable> variables = {
      {"hidden/kernel", {2, 3}}, {"hidden/bias", {3}}, {"embedding_1/embeddings", {9, 2}}, {"out/kernel", {3, 2}}};

  std::vector<std::string> order;
  for (const auto& [variable, slot] : slots_in_keras_order(state, variables)) {
    order.push_back(std::string(slot.keras) + " " + std::to_string(variable));
  }

  EXPECT_THAT(order, ElementsAre("momentum 0", "momentum 1", "velocity 1", "momentum 2", "velocity 2", "momentum 3",
                                 "velocity 3"));
}

TEST(KerasOptimizerState, HasAPassOfItsOwnForTheLargestVelocities) {
  EXPECT_THAT(order_of({{"kind", "adam"}, {"amsgrad", true}}, 2),
              ElementsAre("momentum 0", "velocity 0", "momentum 1", "velocity 1", "velocity_hat 0", "velocity_hat 1"));
  EXPECT_THAT(order_of({{"kind", "of_our_own"}, {"momentum", 0.5}}, 1), IsEmpty());
  EXPECT_THAT(order_of({{"kind", ""}}, 1), IsEmpty());
}

TEST(KerasOptimizerState, BeginsWithTheStepAndTheRate) {
  const KerasOptimizerState state = keras_optimizer_state(metadata_of({{"kind", "lion"}, {"learning_rate", 0.25}}));

  ASSERT_EQ(state.first.size(), 2U);
  EXPECT_EQ(state.first[0].name, "optimizer/iteration");
  EXPECT_EQ(state.first[0].bytes, testing::count("", 7).bytes);
  EXPECT_EQ(state.first[1].name, "optimizer/learning_rate");
  EXPECT_EQ(number_of(state.first[1]), 0.25F);
  EXPECT_THAT(state.last, IsEmpty());
}

TEST(KerasOptimizerState, HasNoRateWithASchedule) {
  const Json schedule = {{"kind", "exponential_decay"}, {"initial_learning_rate", 0.5}};

  EXPECT_EQ(keras_optimizer_state(metadata_of({{"kind", "lion"}, {"learning_rate", schedule}})).first.size(), 1U);
}

float product_of(double beta_1, std::int64_t step) {
  const KerasOptimizerState state =
      keras_optimizer_state(metadata_of({{"kind", "nadam"}, {"learning_rate", 0.25}, {"beta_1", beta_1}}, step));
  EXPECT_EQ(state.last.size(), 1U);
  EXPECT_EQ(state.last[0].name, "optimizer/u_product");
  return number_of(state.last[0]);
}

TEST(KerasOptimizerState, MultipliesTheMomentaOfNadamsSteps) {
  EXPECT_EQ(product_of(0.5, 0), 1.0F);
  // 0.5 (1 - 0.96 / 2), and 0.5 (1 - 0.96^2 / 2) times that.
  EXPECT_FLOAT_EQ(product_of(0.5, 1), 0.26F);
  EXPECT_FLOAT_EQ(product_of(0.5, 2), 0.070096F);
  // All later factors are beta_1: 200 more of 0.99.
  EXPECT_NEAR(product_of(0.99, 1500) / product_of(0.99, 1300), std::pow(0.99, 200), 1e-6);
  EXPECT_EQ(product_of(0.5, std::int64_t{1} << 60), 0.0F);
}

TEST(KerasOptimizerState, CountsNoStepsBelowZero) {
  EXPECT_EQ(product_of(0.5, -1), 1.0F);
}

TEST(KerasOptimizerState, BeginsSlotsAsANewOptimizerDoes) {
  const Json adagrad = {{"kind", "adagrad"}, {"initial_accumulator_value", 0.25}};

  EXPECT_THAT(initial_values("optimizer/accumulator/d/kernel", adagrad), ElementsAre(0.25F, 0.25F, 0.25F));
  EXPECT_THAT(initial_values("optimizer/other/d/kernel", adagrad), ElementsAre(0, 0, 0));
  EXPECT_THAT(initial_values("optimizer/m/d/kernel", {{"kind", "adam"}}), ElementsAre(0, 0, 0));
  EXPECT_THAT(initial_values("optimizer/m/d/kernel", {{"kind", "of_our_own"}}), ElementsAre(0, 0, 0));
}

TEST(KerasOptimizerState, BeginsWithZerosIfTheOptionIsNotANumberOfF32) {
  for (const Json& value : {Json(nullptr), Json("0.1"), Json(1e300)}) {
    EXPECT_THAT(
        initial_values("optimizer/accumulator/d/kernel", {{"kind", "adagrad"}, {"initial_accumulator_value", value}}),
        ElementsAre(0, 0, 0));
  }
}

}  // namespace
}  // namespace holdfast::format
