// A savepoint through Keras's forms and back, without Keras: bits, state of the optimizer, and refusals.

#include "keras/keras_savepoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

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

// A savepoint of the same model, trained with another optimizer.
struct Trained {
  Json optimizer;
  std::vector<std::string> slots;

  Json metadata() const {
    Json metadata = testing::dense_savepoint_metadata(true);
    metadata["configuration"]["optimizer"] = optimizer;
    return metadata;
  }
  ArraySet savepoint(const std::string& seed = "") const {
    ArraySet set{.arrays = {}, .metadata = metadata().dump()};
    const auto add = [&](const std::string& folder) {
      for (const auto& [variable, shape] :
           {std::pair<const char*, std::vector<std::uint64_t>>{"kernel", {2, 3}}, {"bias", {3}}}) {
        const std::string name = folder + "/d/" + variable;
        set.arrays.push_back(floats(name + seed, shape));
        set.arrays.back().name = name;
      }
    };
    add("model");
    for (const std::string& slot : slots) add("optimizer/" + slot);
    return set;
  }
  // As it is read from a Keras file of this form.
  ArraySet keras(KerasForm form) const {
    KerasContent content = lay_out(keras_from_savepoint(savepoint("keras"), metadata()), form);
    return {.arrays = content.arrays, .metadata = keras_metadata(content.description)};
  }
};

Json rmsprop(double momentum, bool centered) {
  return {{"kind", "rmsprop"}, {"learning_rate", 0.1}, {"momentum", momentum}, {"centered", centered}};
}

Json plain_optimizer(const std::string& kind) {
  return {{"kind", kind}, {"learning_rate", 0.1}, {"beta_1", 0.5}};
}

const Trained kAdam = {plain_optimizer("adam"), {"m", "v"}};
const Trained kAdamax = {plain_optimizer("adamax"), {"momentum", "norm"}};
const Trained kNadam = {plain_optimizer("nadam"), {"momentum", "velocity"}};
const std::vector<Trained> kTrained = {
    kAdam,
    kAdamax,
    kNadam,
    {rmsprop(0, false), {"velocity"}},
    {rmsprop(0.5, false), {"velocity", "momentum"}},
    {rmsprop(0, true), {"velocity", "average_gradient"}},
    {rmsprop(0.5, true), {"velocity", "momentum", "average_gradient"}},
    {{{"kind", "adagrad"}, {"learning_rate", 0.1}, {"initial_accumulator_value", 0.25}}, {"accumulator"}},
    {plain_optimizer("adadelta"), {"accumulated_grad", "accumulated_delta_var"}},
    {plain_optimizer("lion"), {"momentum"}},
    {{{"kind", "adam"}, {"learning_rate", 0.1}, {"amsgrad", true}}, {"m", "v", "v_hat"}},
    {plain_optimizer("ftrl"), {"accumulator", "linear"}},
    {plain_optimizer("schedule_free_adamw"), {"momentum", "velocity"}},
    {{{"kind", "sgd"}, {"learning_rate", 0.1}, {"momentum", 0.5}}, {"momentum"}}};

TEST(KerasSavepoint, KeepsTheStateOfEachOptimizer) {
  for (const Trained& trained : kTrained) {
    for (const KerasForm form : {KerasForm::weights, KerasForm::archive, KerasForm::legacy_model}) {
      const ArraySet found = back(trained.keras(form), trained.savepoint());

      const ArraySet expected = trained.savepoint("keras");
      ASSERT_EQ(found.arrays.size(), expected.arrays.size());
      for (const NamedArray& array : expected.arrays) {
        EXPECT_EQ(find(found.arrays, array.name)->bytes, array.bytes)
            << trained.optimizer << " " << name(form) << " " << array.name;
      }
    }
  }
}

// A savepoint repeats each factor along the axis that it lacks, and has zeros for the columns of a bias.
TEST(KerasSavepoint, KeepsTheFactorsOfAdafactor) {
  const Trained trained = {plain_optimizer("adafactor"), {"row_velocity", "column_velocity"}};
  const auto with_factors = [&](ArraySet set) {
    for (NamedArray& array : set.arrays) {
      const std::size_t floats = array.bytes.size() / sizeof(float);
      std::vector<float> values(floats);
      for (std::size_t i = 0; i < floats; ++i) values[i] = static_cast<float>(i / 3 + 1);
      if (array.name == "optimizer/column_velocity/d/kernel") values = {4, 5, 6, 4, 5, 6};
      if (array.name == "optimizer/column_velocity/d/bias") values = {0, 0, 0};
      std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
    }
    return set;
  };
  for (const KerasForm form : {KerasForm::weights, KerasForm::archive, KerasForm::legacy_model}) {
    const ArraySet expected = with_factors(trained.savepoint());
    KerasContent content = lay_out(keras_from_savepoint(expected, trained.metadata()), form);
    const ArraySet keras = {.arrays = content.arrays, .metadata = keras_metadata(content.description)};

    const ArraySet found = back(keras, trained.savepoint("other"));

    for (const NamedArray& array : expected.arrays) {
      if (array.name == "optimizer/column_velocity/d/bias") continue;
      EXPECT_EQ(find(found.arrays, array.name)->bytes, array.bytes) << name(form) << " " << array.name;
    }
  }
}

// Names of slots, or their number, tell all of these apart.
TEST(KerasSavepoint, StartsTheOptimizerAnewWhereTheKerasFileHasAnother) {
  for (const Trained& one : kTrained) {
    for (const Trained& other : kTrained) {
      if (one.optimizer == other.optimizer) continue;
      const ArraySet found = back(other.keras(KerasForm::archive), one.savepoint());

      const double initial = one.optimizer["kind"] == "adagrad" ? 0.25 : 0;
      for (const NamedArray& array : found.arrays) {
        if (array.name.starts_with("model/")) continue;
        std::vector<float> values(array.bytes.size() / sizeof(float));
        std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
        EXPECT_THAT(values, ::testing::Each(initial)) << one.optimizer << other.optimizer << array.name;
      }
      EXPECT_EQ(found.metadata, one.savepoint().metadata);
    }
  }
}

TEST(KerasSavepoint, TellsOptimizersApartInAFileOfWeights) {
  // Both have two slots for each variable, and such a file has no names for them.
  const ArraySet found = back(kAdam.keras(KerasForm::weights), kAdamax.savepoint());

  EXPECT_EQ(find(found.arrays, "optimizer/norm/d/bias")->bytes, std::vector<std::byte>(12));
}

TEST(KerasSavepoint, TakesNoStateWhoseLastArrayIsNotAScalar) {
  ArraySet keras = kNadam.keras(KerasForm::archive);
  for (NamedArray& array : keras.arrays) {
    if (array.name == "optimizer/u_product") array = floats(array.name, {1});
  }

  EXPECT_EQ(find(back(keras, kNadam.savepoint()).arrays, "optimizer/momentum/d/bias")->bytes,
            std::vector<std::byte>(12));
}

TEST(KerasSavepoint, ClearsTheStateOfAnOptimizerThatKerasLacks) {
  const Trained own = {plain_optimizer("of_our_own"), {"mean"}};

  const ArraySet found = back(kAdam.keras(KerasForm::archive), own.savepoint());

  EXPECT_EQ(find(found.arrays, "optimizer/mean/d/kernel")->bytes, std::vector<std::byte>(24));
  EXPECT_EQ(found.metadata, own.savepoint().metadata);
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
