// Weights files of Keras 3 as small trees: which names their variables get, with and without a configuration.

#include "keras_files/keras_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/exchange/support/keras_trees.h"

namespace holdfast::format {
namespace {

using ::testing::ElementsAre;
using testing::floats;
using testing::names;

KerasContent read_weights(Hdf5Tree tree, const KerasModel* model = nullptr) {
  KerasContent content;
  read_keras_weights(tree, model, {}, content);
  return content;
}

TEST(KerasWeights, NamesVariablesAfterTheirClass) {
  const KerasContent content = read_weights(
      testing::tree({}, {floats("layers/dense/vars/0", {2, 3}), floats("layers/dense/vars/1", {3}),
                         floats("layers/lstm/cell/vars/0", {2, 8}), floats("layers/lstm/cell/vars/1", {2, 8}),
                         floats("layers/lstm/cell/vars/2", {8})}));

  EXPECT_THAT(names(content.arrays), ElementsAre("model/dense/bias", "model/dense/kernel", "model/lstm/cell/bias",
                                                 "model/lstm/cell/kernel", "model/lstm/cell/recurrent_kernel"));
  EXPECT_EQ(content.description.paths.at("model/dense/bias"), "layers/dense/vars/1");
}

// As text, "10" sorts before "2".
TEST(KerasWeights, CountsVariablesAsNumbers) {
  std::vector<NamedArray> datasets = {testing::count("optimizer/vars/0", 3)};
  for (int i = 1; i < 12; ++i) datasets.push_back(floats("optimizer/vars/" + std::to_string(i), {2}));

  const KerasContent content = read_weights(testing::tree({}, datasets));

  ASSERT_EQ(content.description.optimizer.size(), 12U);
  EXPECT_EQ(content.description.optimizer[0], "optimizer/iteration");
  EXPECT_EQ(content.description.optimizer[2], "optimizer/2");
  EXPECT_EQ(content.description.optimizer[11], "optimizer/11");
}

TEST(KerasWeights, KeepsNumbersWhereVariablesAreMissingOrUnknown) {
  const KerasContent content =
      read_weights(testing::tree({}, {floats("layers/dense/vars/0", {2}), floats("layers/dense/vars/2", {2}),
                                      floats("layers/mine/vars/0", {2}), floats("vars/0", {2})}));

  EXPECT_THAT(names(content.arrays), ElementsAre("model/0", "model/dense/0", "model/dense/2", "model/mine/0"));
}

TEST(KerasWeights, KeepsDatasetsThatAreNotVariables) {
  const KerasContent content =
      read_weights(testing::tree({}, {floats("layers/dense/vars/00", {2}), floats("layers/dense/vars/x", {2}),
                                      floats("layers/dense/vars/99999999999999999999", {1}), floats("notes", {1})}));

  EXPECT_THAT(names(content.arrays),
              ElementsAre("extra/layers/dense/vars/00", "extra/layers/dense/vars/99999999999999999999",
                          "extra/layers/dense/vars/x", "extra/notes"));
}

TEST(KerasWeights, GivesEachArrayANameOfItsOwn) {
  const KerasContent content =
      read_weights(testing::tree({}, {floats("layers/dense/vars/0", {2}), floats("dense/vars/0", {3}),
                                      floats("layers/layers/dense/vars/0", {4})}));

  EXPECT_EQ(content.arrays.size(), 3U);
  EXPECT_EQ(content.description.paths.size(), 3U);
  EXPECT_THAT(names(content.arrays), ::testing::Contains("model/dense/kernel"));
}

TEST(KerasWeights, NamesPartsOfAnUnknownLayerBelowTheirOwner) {
  const KerasModel model(testing::sequential({testing::layer("Mine", "own_name")}), "the model");

  const KerasContent content = read_weights(testing::tree({}, {floats("layers/mine/inner/vars/0", {2})}), &model);

  EXPECT_THAT(names(content.arrays), ElementsAre("model/own_name/inner/0"));
}

TEST(KerasWeights, SurvivesReadingAndWriting) {
  const Hdf5Tree before = testing::tree({{"layers/dense/vars", {{"name", std::string("dense_7")}}}},
                                        {floats("layers/dense/vars/0", {2, 3}), floats("x", {1})});
  const KerasContent content = read_weights(before);

  const Hdf5Tree after = keras_tree(content.arrays, content.description);

  ASSERT_EQ(after.datasets.size(), 2U);
  for (const Hdf5Dataset& dataset : after.datasets) {
    const Hdf5Dataset* expected = before.find_dataset(dataset.array.name);
    ASSERT_NE(expected, nullptr) << dataset.array.name;
    EXPECT_EQ(dataset.array.bytes, expected->array.bytes);
    EXPECT_EQ(dataset.array.shape, expected->array.shape);
  }
  ASSERT_EQ(after.groups.size(), 1U);
  EXPECT_EQ(text_attribute(after.groups[0].attributes, "name"), "dense_7");
}

}  // namespace
}  // namespace holdfast::format
