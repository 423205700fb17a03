// The table against the cases of the SDK's optimizers, which exchange does not link. KerasCases in tests/unit/optim
// compares the same file with the SDK itself.

#include "keras_files/keras_optimizer_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "support/folders.h"

namespace holdfast::format {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::vector<std::string>> pass_names(std::string_view class_name, const Json& options) {
  std::vector<std::vector<std::string>> names;
  for (const KerasOptimizerPass& pass : keras_optimizer_passes(*keras_optimizer_of_class(class_name), options)) {
    names.emplace_back();
    for (const KerasOptimizerSlot& slot : pass) names.back().emplace_back(slot.keras);
  }
  return names;
}

TEST(KerasOptimizerTable, NamesTheSlotsOfHoldfast) {
  std::ifstream file(source_folder() + "/tests/unit/optim/reference/optimizers.json");
  const Json cases = Json::parse(file);
  ASSERT_EQ(cases.size(), 35U);
  for (const Json& one : cases) {
    // Its slots have another shape in Keras, so they stay in savepoints.
    if (text_member(one, "kind") == "adafactor") continue;
    const KerasOptimizerKind* kind = keras_optimizer_of_kind(text_member(one, "kind"));
    ASSERT_NE(kind, nullptr) << text_member(one, "kind");
    std::set<std::string> names;
    for (const KerasOptimizerPass& pass : keras_optimizer_passes(*kind, one["options"])) {
      for (const KerasOptimizerSlot& slot : pass) {
        // A matrix has no velocity of Muon.
        if (!slot.is_for_adam_alone || member(one, "shape").size() != 2) names.emplace(slot.holdfast);
      }
    }
    std::set<std::string> expected;
    for (const auto& slot : one["slots"].items()) expected.insert(slot.key());
    EXPECT_EQ(names, expected) << kind->holdfast << one["options"];
  }
}

TEST(KerasOptimizerTable, PutsSlotsOfOptionsIntoPassesOfTheirOwn) {
  EXPECT_THAT(pass_names("RMSprop", {{"momentum", 0.5}, {"centered", true}}),
              ElementsAre(ElementsAre("velocity"), ElementsAre("momentum"), ElementsAre("average_gradient")));
  EXPECT_THAT(pass_names("RMSprop", {{"momentum", 0.0}, {"centered", true}}),
              ElementsAre(ElementsAre("velocity"), ElementsAre("average_gradient")));
  EXPECT_THAT(pass_names("Adam", {{"amsgrad", true}}),
              ElementsAre(ElementsAre("momentum", "velocity"), ElementsAre("velocity_hat")));
  EXPECT_THAT(pass_names("SGD", {{"momentum", 0.0}}), IsEmpty());
}

TEST(KerasOptimizerTable, FindsNothingForNamesThatItLacks) {
  EXPECT_EQ(keras_optimizer_of_class("LossScaleOptimizer"), nullptr);
  EXPECT_EQ(keras_optimizer_of_class("rmsprop"), nullptr);
  EXPECT_EQ(keras_optimizer_of_kind("RMSprop"), nullptr);
  EXPECT_EQ(keras_optimizer_of_kind(""), nullptr);
}

}  // namespace
}  // namespace holdfast::format
