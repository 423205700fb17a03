// A savepoint through Keras's forms and back, without Keras: bits, state of the optimizer, and refusals.

#include "keras/keras_savepoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "keras_files/keras_forms.h"
#include "unit/exchange/support/keras_trees.h"
#include "unit/format/support/array_files.h"

namespace holdfast::format {
namespace {

using testing::error_of;
using testing::find;
using testing::floats;
using ::testing::HasSubstr;

const Json kMetadataWithoutBias = testing::dense_savepoint_metadata(false);

ArraySet savepoint_without_bias(const std::string& seed = "") {
  ArraySet set{.arrays = {}, .metadata = kMetadataWithoutBias.dump()};
  for (const char* name : {"model/d/kernel", "optimizer/m/d/kernel", "optimizer/v/d/kernel"}) {
    set.arrays.push_back(floats(name + seed, {2, 3}));
    set.arrays.back().name = name;
  }
  return set;
}

// The savepoint as it is read from a Keras file of this form.
ArraySet keras(KerasForm form) {
  KerasContent content = lay_out(keras_from_savepoint(savepoint_without_bias("keras"), kMetadataWithoutBias), form);
  return {.arrays = content.arrays, .metadata = keras_metadata(content.description)};
}

ArraySet back(const ArraySet& from, const ArraySet& like = savepoint_without_bias()) {
  return keras_to_savepoint(from, like);
}

TEST(KerasSavepoint, SurvivesEveryFormThatHoldsAllOfIt) {
  for (const KerasForm form : {KerasForm::weights, KerasForm::archive, KerasForm::legacy_model}) {
    ArraySet like = savepoint_without_bias();
    Json metadata = kMetadataWithoutBias;
    metadata["step"] = 0;
    like.metadata = metadata.dump();

    const ArraySet found = back(keras(form), like);

    const ArraySet expected = savepoint_without_bias("keras");
    for (const NamedArray& array : expected.arrays) {
      EXPECT_EQ(find(found.arrays, array.name)->bytes, array.bytes) << name(form) << " " << array.name;
    }
    EXPECT_EQ(Json::parse(found.metadata), kMetadataWithoutBias);
  }
}

ArraySet savepoint_without_scale(const std::string& seed) {
  Json metadata = kMetadataWithoutBias;
  metadata["graph"]["layers"] = Json::array();
  metadata["graph"]["layers"].push_back({{"kind", "BatchNormalization"},
                                         {"name", "n"},
                                         {"config", {{"momentum", 0.5}, {"epsilon", 0.25}, {"scale", false}}}});
  ArraySet set{.arrays = {}, .metadata = metadata.dump()};
  for (const char* name :
       {"model/n/beta", "model/n/moving_mean", "model/n/moving_variance", "optimizer/m/n/beta", "optimizer/v/n/beta"}) {
    set.arrays.push_back(floats(name + seed, {2}));
    set.arrays.back().name = name;
  }
  return set;
}

TEST(KerasSavepoint, AddsNoFactorsToABatchNormalizationWithoutScale) {
  const ArraySet expected = savepoint_without_scale("keras");
  const KerasContent written = keras_from_savepoint(expected, Json::parse(expected.metadata));
  for (const KerasForm form : {KerasForm::archive, KerasForm::legacy_model}) {
    const KerasContent content = lay_out(written, form);

    const ArraySet found =
        back({.arrays = content.arrays, .metadata = keras_metadata(content.description)}, savepoint_without_scale(""));

    testing::expect_equal(found.arrays, expected.arrays);
  }
}

TEST(KerasSavepoint, ClearsTheStateThatBelongsToOtherWeights) {
  const ArraySet found = back(keras(KerasForm::legacy_weights));

  EXPECT_EQ(find(found.arrays, "model/d/kernel")->bytes, savepoint_without_bias("keras").arrays[0].bytes);
  EXPECT_EQ(find(found.arrays, "optimizer/m/d/kernel")->bytes, std::vector<std::byte>(24));
  EXPECT_EQ(found.metadata, savepoint_without_bias().metadata);
}

TEST(KerasSavepoint, IgnoresTheStateOfAnotherOptimizer) {
  ArraySet other = keras(KerasForm::archive);
  Json metadata = Json::parse(other.metadata);
  Json config = Json::parse(metadata["keras"]["config"].get<std::string>());
  config["compile_config"]["optimizer"]["class_name"] = "RMSprop";
  metadata["keras"]["config"] = config.dump();
  other.metadata = metadata.dump();

  EXPECT_EQ(find(back(other).arrays, "optimizer/m/d/kernel")->bytes, std::vector<std::byte>(24));
}

TEST(KerasSavepoint, RefusesOtherShapesAndTypes) {
  ArraySet wide = keras(KerasForm::archive);
  for (NamedArray& array : wide.arrays) {
    if (array.name == "model/d/kernel") array = floats(array.name, {2, 4});
  }
  ArraySet whole = keras(KerasForm::archive);
  for (NamedArray& array : whole.arrays) array.dtype = DType::i32;

  EXPECT_THAT(error_of([&] { back(wide); }),
              HasSubstr("layer \"d\": kernel has shape (2, 3), but the Keras model's \"model/d/kernel\" has (2, 4)"));
  EXPECT_THAT(error_of([&] { back(whole); }), HasSubstr("is f32, but the Keras model's \"model/d/kernel\" is i32"));
}

TEST(KerasSavepoint, RefusesSavepointsThatLackTheirArrays) {
  ArraySet like = savepoint_without_bias();
  like.arrays.clear();
  ArraySet other = savepoint_without_bias();
  other.metadata = "{}";

  EXPECT_THAT(error_of([&] { back(keras(KerasForm::archive), like); }), HasSubstr("incompatible: "));
  EXPECT_THAT(error_of([&] { back(keras(KerasForm::archive), other); }), HasSubstr("invalid_argument: "));
  EXPECT_THAT(error_of([&] { keras_from_savepoint(like, kMetadataWithoutBias); }), HasSubstr("invalid_argument: "));
}

TEST(KerasSavepoint, CountsStepsBeyond32Bits) {
  Json metadata = kMetadataWithoutBias;
  metadata["step"] = std::int64_t{1} << 40;
  const KerasContent content = keras_from_savepoint(savepoint_without_bias(), metadata);

  EXPECT_EQ(find(content.arrays, "optimizer/iteration")->dtype, DType::i64);
}

}  // namespace
}  // namespace holdfast::format
