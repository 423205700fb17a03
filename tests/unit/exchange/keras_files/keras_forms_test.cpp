#include "keras_files/keras_forms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/exchange/support/keras_trees.h"

namespace holdfast::format {
namespace {

using testing::error_of;
using testing::floats;
using ::testing::HasSubstr;
using testing::layer;

KerasContent archive(std::vector<Json> layers, std::vector<NamedArray> arrays) {
  KerasContent content;
  content.description.form = KerasForm::archive;
  content.description.config = testing::sequential(std::move(layers)).dump();
  for (const NamedArray& array : arrays) content.description.paths[array.name] = "layers/" + array.name;
  content.arrays = std::move(arrays);
  return content;
}

KerasContent one_dense() {
  return archive({layer("Dense", "d")}, {floats("model/d/kernel", {2, 3}), floats("model/d/bias", {3})});
}

TEST(KerasForms, LaysOutALegacyFile) {
  const KerasContent legacy = convert(one_dense(), KerasForm::legacy_model);

  EXPECT_EQ(legacy.description.paths.at("model/d/kernel"), "model_weights/d/d/kernel");
  const Hdf5Tree tree = keras_tree(legacy.arrays, legacy.description);
  EXPECT_EQ(tree.datasets.size(), 2U);
}

TEST(KerasForms, RefusesALegacyFileThatKerasDoesNotLoad) {
  KerasContent content = one_dense();
  Json config = Json::parse(content.description.config);
  config["compile_config"] = {{"optimizer", {{"class_name", "Lamb"}, {"config", Json::object()}}}};
  content.description.config = config.dump();

  EXPECT_THAT(error_of([&] { convert(content, KerasForm::legacy_model); }), HasSubstr("with the optimizer Lamb"));
}

TEST(KerasForms, KeepsTheFormThatItHas) {
  const KerasContent same = convert(one_dense(), KerasForm::archive);

  EXPECT_EQ(same.description.paths, one_dense().description.paths);
}

TEST(KerasForms, LeavesTheOptimizerOutOfWeightsAlone) {
  KerasContent content = one_dense();
  content.arrays.push_back(testing::count("optimizer/iteration", 4));
  content.description.optimizer = {"optimizer/iteration"};

  EXPECT_EQ(convert(content, KerasForm::legacy_weights).arrays.size(), 2U);
  EXPECT_EQ(convert(content, KerasForm::legacy_model).arrays.size(), 3U);
}

TEST(KerasForms, RefusesWhatTheOtherFormHasNoPlaceFor) {
  KerasContent more = one_dense();
  more.arrays.push_back(floats("model/other", {1}));
  KerasContent less = one_dense();
  less.arrays.pop_back();
  KerasContent no_config = one_dense();
  no_config.description.config.clear();
  const KerasContent unknown = archive({layer("Mine", "m")}, {});

  EXPECT_THAT(error_of([&] { convert(more, KerasForm::legacy_model); }), HasSubstr("array \"model/other\""));
  EXPECT_THAT(error_of([&] { convert(less, KerasForm::legacy_model); }), HasSubstr("lacks the array \"model/d/bias\""));
  EXPECT_THAT(error_of([&] { convert(no_config, KerasForm::legacy_model); }), HasSubstr("configuration"));
  EXPECT_THAT(error_of([&] { convert(unknown, KerasForm::legacy_model); }), HasSubstr("\"m\" is of class Mine"));
}

TEST(KerasForms, RefusesArraysThatAreNotTheDescribedOnes) {
  KerasContent more = one_dense();
  more.arrays.push_back(floats("model/other", {1}));
  KerasContent less = one_dense();
  less.arrays.pop_back();

  EXPECT_THAT(error_of([&] { keras_tree(more.arrays, more.description); }), HasSubstr("invalid_argument: "));
  EXPECT_THAT(error_of([&] { keras_tree(less.arrays, less.description); }), HasSubstr("invalid_argument: "));
}

}  // namespace
}  // namespace holdfast::format
