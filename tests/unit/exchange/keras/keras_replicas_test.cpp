// Wrappers of multi_gpu_model as small trees: which are removed, and which models only resemble one.

#include "keras/keras_replicas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "keras_files/keras_legacy.h"
#include "unit/exchange/support/keras_trees.h"

namespace holdfast::format {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using testing::floats;
using ::testing::HasSubstr;
using testing::layer;
using Names = std::vector<std::string>;

Json called_by(Json entry, const Names& callers) {
  Json nodes = Json::array();
  for (const std::string& caller : callers) nodes.push_back(Json::array({Json::array({caller, 0, 0, Json::object()})}));
  entry["name"] = entry["config"]["name"];
  entry["inbound_nodes"] = nodes;
  return entry;
}

Json wrapper(Json base) {
  base["config"]["name"] = "base";
  return {{"class_name", "Model"},
          {"config",
           {{"name", "outer"},
            {"layers",
             {called_by(layer("InputLayer", "input"), {}), called_by(layer("Lambda", "lambda_1"), {"input"}),
              called_by(layer("Lambda", "lambda_2"), {"input"}), called_by(base, {"lambda_1", "lambda_2"}),
              called_by(layer("Concatenate", "merged", {{"axis", 0}}), {"base"})}}}}};
}

const Names kLayers = {"input", "lambda_1", "lambda_2", "base", "merged"};

Hdf5Tree wrapped_tree(const Names& weights) {
  std::vector<Hdf5Group> groups = {{"", {{"layer_names", kLayers}}}};
  for (const std::string& name : kLayers) groups.push_back({name, {{"weight_names", Names{}}}});
  groups[4].attributes = {{"weight_names", weights}};
  std::vector<NamedArray> datasets;
  for (const std::string& weight : weights) datasets.push_back(floats("base/" + weight, {2}));
  return testing::tree(groups, datasets);
}

const Json kBase = testing::sequential({layer("Dense", "one"), layer("Dense", "two", {{"use_bias", false}})});
const Names kWeights = {"one/kernel:0", "one/bias:0", "two/kernel:0"};

TEST(KerasReplicas, ReplacesTheWrappersLayersByTheBaseModels) {
  Hdf5Tree tree = wrapped_tree(kWeights);
  const std::vector<std::byte> bytes = tree.find_dataset("base/two/kernel:0")->array.bytes;
  Json config = wrapper(kBase);

  ASSERT_EQ(unwrap_replicas(tree, "", config, "the file"), 1U);

  EXPECT_EQ(config["class_name"], "Sequential");
  const std::vector<LegacyLayer> layers = legacy_layers(tree, "", "the file");
  ASSERT_EQ(layers.size(), 2U);
  EXPECT_EQ(layers[0].name, "one");
  EXPECT_THAT(layers[0].weights, ElementsAre("one/kernel:0", "one/bias:0"));
  EXPECT_EQ(tree.find_dataset("two/two/kernel:0")->array.bytes, bytes);
  EXPECT_EQ(tree.find_group("base"), nullptr);
  EXPECT_EQ(tree.find_group("lambda_1"), nullptr);
}

TEST(KerasReplicas, RemovesEveryWrapper) {
  Hdf5Tree tree = wrapped_tree(kWeights);
  Json config = wrapper(kBase);
  for (int i = 1; i < 200; ++i) config = wrapper(config);

  EXPECT_EQ(unwrap_replicas(tree, "", config, "the file"), 200U);
  EXPECT_NE(tree.find_dataset("one/one/bias:0"), nullptr);
}

TEST(KerasReplicas, LeavesModelsThatOnlyResembleAWrapper) {
  const Json whole = wrapper(kBase);
  const auto changed = [&](const char* pointer, const Json& value) {
    Json config = whole;
    config[Json::json_pointer(pointer)] = value;
    return config;
  };
  for (Json config : {changed("/config/layers/4/config/axis", -1),                  // concatenates features
                      changed("/config/layers/4/inbound_nodes/0/0/0", "lambda_1"),  // something else
                      changed("/config/layers/1/inbound_nodes/0/0/0", "base"),      // a Lambda after the base
                      changed("/config/layers/3/inbound_nodes/0/0/0", "input"),     // the base without its slice
                      changed("/config/layers/2/class_name", "Dense"),              // one slice alone
                      changed("/config/layers/3/class_name", "Dense"),              // no base
                      changed("/config/layers/1/inbound_nodes", "nonsense"),        // no calls
                      changed("/class_name", "Sequential"),                         //
                      changed("/config/layers", Json::object()), kBase}) {
    Hdf5Tree tree = wrapped_tree(kWeights);
    const Json before = config;

    EXPECT_EQ(unwrap_replicas(tree, "", config, "the file"), 0U) << config.dump();
    EXPECT_EQ(config, before);
    EXPECT_NE(tree.find_dataset("base/two/kernel:0"), nullptr);
  }
}

TEST(KerasReplicas, MatchesLayersByNameWhereTheirNumberDoesNotHelp) {
  Hdf5Tree tree = wrapped_tree({"two/kernel:0", "one_1/offset:0"});
  Json config = wrapper(kBase);

  ASSERT_EQ(unwrap_replicas(tree, "", config, "the file"), 1U);

  EXPECT_NE(tree.find_dataset("one/one_1/offset:0"), nullptr);
  EXPECT_NE(tree.find_dataset("two/two/kernel:0"), nullptr);
}

TEST(KerasReplicas, RefusesWeightsThatBelongToNoLayer) {
  Hdf5Tree tree = wrapped_tree({"three/kernel:0"});
  Json config = wrapper(kBase);

  EXPECT_THAT(error_of([&] { unwrap_replicas(tree, "", config, "the file"); }),
              HasSubstr("unsupported: the file holds a replicated model"));
}

TEST(KerasReplicas, RefusesWeightsThatAreListedButMissing) {
  Hdf5Tree tree = wrapped_tree(kWeights);
  tree.datasets.pop_back();
  Json config = wrapper(kBase);

  EXPECT_THAT(error_of([&] { unwrap_replicas(tree, "", config, "the file"); }), HasSubstr("invalid_file: the file"));
}

TEST(KerasReplicas, RecognisesAWrapperByItsLayersNamesWithoutAConfiguration) {
  Hdf5Tree tree = wrapped_tree(kWeights);
  Json none;

  ASSERT_EQ(unwrap_replicas(tree, "", none, "the file"), 1U);
  EXPECT_NE(tree.find_dataset("two/two/kernel:0"), nullptr);

  Hdf5Tree honest = wrapped_tree(kWeights);
  honest.groups[0].attributes = {{"layer_names", Names{"input", "lambda_1", "base"}}};
  EXPECT_EQ(unwrap_replicas(honest, "", none, "the file"), 0U);
}

}  // namespace
}  // namespace holdfast::format
