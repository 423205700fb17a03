// Legacy Keras files as small trees: which names their weights get, and which lists are refused.

#include "keras_files/keras_legacy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/exchange/support/keras_trees.h"

namespace holdfast::format {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using testing::floats;
using ::testing::HasSubstr;
using testing::names;
using Names = std::vector<std::string>;

Hdf5Tree one_layer(const std::string& layer, const Names& weights) {
  std::vector<NamedArray> datasets;
  for (const std::string& weight : weights) datasets.push_back(floats(layer + "/" + weight, {2}));
  return testing::tree({{"", {{"layer_names", Names{layer}}}}, {layer, {{"weight_names", weights}}}}, datasets);
}

KerasContent read_legacy(Hdf5Tree tree, const KerasModel* model = nullptr) {
  KerasContent content;
  read_keras_legacy(tree, "", model, {}, "the file", content);
  return content;
}

TEST(KerasLegacy, FindsTheVariableAfterTheLayersName) {
  EXPECT_EQ(legacy_variable("dense_1", "dense_1/kernel:0"), "kernel");
  EXPECT_EQ(legacy_variable("dense_1", "net/dense_1/kernel"), "kernel");
  EXPECT_EQ(legacy_variable("dense_1", "dense_1_2/kernel:0"), "kernel");
  EXPECT_EQ(legacy_variable("lstm", "lstm/lstm_cell/kernel:0"), "lstm_cell/kernel");
  EXPECT_EQ(legacy_variable("outer", "dense/kernel:0"), "dense/kernel");
  EXPECT_EQ(legacy_variable("dense", "kernel"), "kernel");
  EXPECT_EQ(legacy_variable("dense", "dense/odd:name"), "odd:name");
}

TEST(KerasLegacy, NumbersWeightsThatWouldShareAName) {
  const KerasContent content = read_legacy(one_layer("a", {"a/kernel:0", "a_1/kernel:0"}));

  EXPECT_THAT(names(content.arrays), ElementsAre("model/a/0", "model/a/1"));
}

TEST(KerasLegacy, ReadsListsThatWereSplitBecauseTheyWereLong) {
  Hdf5Tree tree = one_layer("a", {"a/kernel:0"});
  tree.groups[0].attributes = {{"layer_names0", Names{}}, {"layer_names1", Names{"a"}}};

  ASSERT_TRUE(is_legacy_weights(tree, ""));
  EXPECT_THAT(names(read_legacy(tree).arrays), ElementsAre("model/a/kernel"));
}

TEST(KerasLegacy, UsesTheNamesInTheFileWhereTheConfigurationDisagrees) {
  const KerasModel model(testing::sequential({testing::layer("Dense", "a")}), "the model");

  EXPECT_THAT(names(read_legacy(one_layer("a", {"a/kernel:0", "a/offset:0"}), &model).arrays),
              ElementsAre("model/a/kernel", "model/a/offset"));
}

TEST(KerasLegacy, RefusesListsWithMissingOrRepeatedEntries) {
  Hdf5Tree no_layer = one_layer("a", {"a/kernel:0"});
  no_layer.groups[0].attributes = {{"layer_names", Names{"a", "b"}}};
  Hdf5Tree no_weight = one_layer("a", {"a/kernel:0"});
  no_weight.datasets.clear();
  Hdf5Tree twice = one_layer("a", {"a/kernel:0"});
  twice.groups[0].attributes = {{"layer_names", Names{"a", "a"}}};

  EXPECT_THAT(error_of([&] { read_legacy(no_layer); }), HasSubstr("invalid_file: the file lists the layer \"b\""));
  EXPECT_THAT(error_of([&] { read_legacy(no_weight); }), HasSubstr("invalid_file: the file lists the weight"));
  EXPECT_THAT(error_of([&] { read_legacy(twice); }), HasSubstr("invalid_file: the file lists the weight"));
}

TEST(KerasLegacy, IgnoresAttributesOfAnotherType) {
  Hdf5Tree tree = one_layer("a", {"a/kernel:0"});
  tree.groups[0].attributes = {{"layer_names", std::string("a")}};

  EXPECT_THAT(names(read_legacy(tree).arrays), ElementsAre("extra/a/a/kernel:0"));
}

TEST(KerasLegacy, ReadsLayersWithoutWeightsAsH5pyWritesThem) {
  Hdf5Tree tree = one_layer("a", {});
  for (Hdf5Group& group : tree.groups) {
    if (group.path == "a") group.attributes = {{"weight_names", NamedArray{"", DType::f64, {0}, {}}}};
  }

  const KerasContent content = read_legacy(tree);

  EXPECT_TRUE(content.arrays.empty());
  const KerasDescription again = keras_description(Json::parse(keras_metadata(content.description)));
  ASSERT_EQ(again.groups.size(), 2U);
  EXPECT_EQ(std::get<NamedArray>(again.groups[1].attributes[0].value).shape, (std::vector<std::uint64_t>{0}));
}

}  // namespace
}  // namespace holdfast::format
