// The layers, names and paths that follow from a model's configuration, and the limits on hostile ones.

#include "keras_files/keras_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/exchange/support/keras_trees.h"

namespace holdfast::format {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::layer;
using testing::sequential;

std::vector<std::string> arrays(const std::vector<KerasSlot>& slots) {
  std::vector<std::string> result;
  for (const KerasSlot& slot : slots) result.push_back(slot.array);
  return result;
}

std::vector<std::string> paths(const std::vector<KerasSlot>& slots) {
  std::vector<std::string> result;
  for (const KerasSlot& slot : slots) result.push_back(slot.weights_path);
  return result;
}

TEST(KerasModel, CountsLayersOfAClassInEachContainer) {
  const Json inner = sequential({layer("Dense", "x"), layer("Dense", "y", {{"use_bias", false}})});
  const KerasModel model(
      sequential({layer("Dense", "a", {{"use_bias", false}}), inner, layer("Dense", "b", {{"use_bias", false}})}),
      "the model");

  EXPECT_TRUE(model.is_complete());
  EXPECT_THAT(arrays(model.slots()), ElementsAre("a/kernel", "net/x/kernel", "net/x/bias", "net/y/kernel", "b/kernel"));
  EXPECT_THAT(paths(model.slots()), ElementsAre("layers/dense/vars/0", "layers/sequential/layers/dense/vars/0",
                                                "layers/sequential/layers/dense/vars/1",
                                                "layers/sequential/layers/dense_1/vars/0", "layers/dense_1/vars/0"));
}

TEST(KerasModel, ReachesPartsByTheirAttribute) {
  const KerasModel model(
      sequential({layer("Bidirectional", "both", {{"layer", layer("LSTM", "forward", {{"use_bias", false}})}})}),
      "the model");

  EXPECT_THAT(arrays(model.slots()),
              ElementsAre("both/forward_layer/cell/kernel", "both/forward_layer/cell/recurrent_kernel",
                          "both/backward_layer/cell/kernel", "both/backward_layer/cell/recurrent_kernel"));
}

TEST(KerasModel, PutsFrozenWeightsLastInTheOrderOfLegacyFiles) {
  Json frozen = layer("Dense", "frozen", {{"trainable", false}});
  const KerasModel model(sequential({frozen, layer("BatchNormalization", "norm")}), "the model");

  EXPECT_THAT(arrays(model.legacy_slots()), ElementsAre("norm/gamma", "norm/beta", "frozen/kernel", "frozen/bias",
                                                        "norm/moving_mean", "norm/moving_variance"));
}

TEST(KerasModel, ReadsTheListOfLayersThatKeras1Wrote) {
  const Json config = {{"class_name", "Sequential"}, {"config", Json::array({layer("Dense", "dense_1")})}};

  EXPECT_THAT(arrays(KerasModel(config, "the model").slots()), ElementsAre("dense_1/kernel", "dense_1/bias"));
}

TEST(KerasModel, IsIncompleteWithAClassThatItDoesNotKnow) {
  const KerasModel model(sequential({layer("Mine", "mine"), layer("Dense", "dense")}), "the model");

  EXPECT_FALSE(model.is_complete());
  EXPECT_EQ(model.find("layers/mine")->array_path, "mine");
  EXPECT_FALSE(KerasModel(layer("MyModel", "m"), "the model").is_complete());
}

TEST(KerasModel, RefusesEndlessNesting) {
  Json config = layer("Dense", "dense");
  for (int i = 0; i < 100; ++i) config = layer("TimeDistributed", "t", {{"layer", config}});

  EXPECT_THAT(error_of([&] { KerasModel(sequential({config}), "the model"); }),
              HasSubstr("invalid_file: the model nests layers deeper"));
}

// Each wrapper contains its layer twice: 2^40 copies of the innermost.
TEST(KerasModel, RefusesWrappersThatMultiplyTheirLayers) {
  Json config = layer("LSTM", "lstm");
  for (int i = 0; i < 40; ++i) config = layer("Bidirectional", "b", {{"layer", config}});

  EXPECT_THAT(error_of([&] { KerasModel(sequential({config}), "the model"); }),
              HasSubstr("invalid_file: the model has more than"));
}

TEST(KerasModel, RefusesNamesThatEveryLayerWouldRepeat) {
  std::vector<Json> layers;
  for (int i = 0; i < 1000; ++i) layers.push_back(layer("ReLU", "r" + std::to_string(i)));
  Json inner = sequential(layers);
  inner["config"]["name"] = std::string(1'000'000, 'n');

  EXPECT_THAT(error_of([&] { KerasModel(sequential({inner}), "the model"); }), HasSubstr("or names of more than"));
}

TEST(KerasModel, RefusesJsonThatDoesNotDescribeAModel) {
  for (const Json& config : {Json(), Json(3), Json::array(), Json{{"config", {}}}, sequential({Json(5)}),
                             sequential({Json{{"class_name", 7}}})}) {
    EXPECT_THAT(error_of([&] { KerasModel(config, "the model"); }), HasSubstr("invalid_file: the model"))
        << config.dump();
  }
}

}  // namespace
}  // namespace holdfast::format
