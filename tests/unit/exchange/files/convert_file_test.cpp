// Conversions between kinds of files: no bit is lost, every omission is noted, and refusals name the files.

#include "holdfast/format/exchange/convert_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "holdfast/format/exchange/npz.h"
#include "holdfast/format/exchange/safetensors.h"
#include "support/disks/memory_file_system.h"
#include "unit/exchange/support/keras_trees.h"
#include "unit/format/support/array_files.h"

namespace holdfast::format {
namespace {

using ::testing::ElementsAre;
using testing::find;
using testing::floats;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::make_array;
using testing::names;
using testing::small_arrays;
using testing::Thrown;
using testing::thrown_by;

const Json kDenseMetadata = testing::dense_savepoint_metadata(true);

// A savepoint of a model of one layer, trained with Adam. Each `seed` gives other values.
ArraySet dense_savepoint(const std::string& seed = "", const Json& metadata = kDenseMetadata) {
  ArraySet set{.arrays = {}, .metadata = metadata.dump()};
  for (const std::string part : {"model", "optimizer/m", "optimizer/v"}) {
    set.arrays.push_back(floats(part + "/d/bias" + seed, {3}));
    set.arrays.back().name = part + "/d/bias";
    set.arrays.push_back(floats(part + "/d/kernel" + seed, {2, 3}));
    set.arrays.back().name = part + "/d/kernel";
  }
  return set;
}

ArraySet without_optimizer(ArraySet set) {
  std::erase_if(set.arrays, [](const NamedArray& array) { return !array.name.starts_with("model/"); });
  return set;
}

ArraySet zeroed(ArraySet set) {
  for (NamedArray& array : set.arrays) std::fill(array.bytes.begin(), array.bytes.end(), std::byte{0});
  return set;
}

void expect_equal(const ArraySet& actual, const ArraySet& expected) {
  testing::expect_equal(actual.arrays, expected.arrays);
}

class ConvertFile : public ::testing::Test {
 protected:
  ConvertFile() { files_.create_folders("/d"); }

  void write(const std::string& path, const ArraySet& set) {
    write_array_file(files_, path, set.metadata, views(set.arrays));
  }

  Conversion convert(const std::string& input, const std::string& output, const ConvertOptions& options = {}) {
    return convert_file(files_, input, output, options);
  }

  Thrown refusal(const std::string& input, const std::string& output, const ConvertOptions& options = {}) {
    const FileContents before = files_.contents();
    const Thrown thrown = thrown_by([&] { convert(input, output, options); });
    EXPECT_EQ(files_.contents(), before) << "nothing is written then";
    return thrown;
  }

  MemoryFileSystem files_;
};

TEST_F(ConvertFile, LosesNothingBetweenFilesOfAnyArrays) {
  write_array_file(files_, "/d/a.h5", R"({"some": ["thing", 1]})", views(small_arrays()));
  const ArraySet expected = read_any(files_, "/d/a.h5");

  std::string last = "/d/a.h5";
  for (const std::string next : {"/d/b.safetensors", "/d/c.npz", "/d/d.safetensors", "/d/e.h5"}) {
    const Conversion result = convert(last, next);

    EXPECT_EQ(result.arrays, expected.arrays.size());
    expect_equal(read_any(files_, next), expected);
    EXPECT_EQ(read_any(files_, next).metadata, expected.metadata);
    last = next;
  }

  EXPECT_EQ(files_.contents().at("/d/e.h5"), files_.contents().at("/d/a.h5"));
}

TEST_F(ConvertFile, SaysWhatItWrote) {
  write("/d/a.h5", dense_savepoint());

  const Conversion result = convert("/d/a.h5", "/d/b.npz");

  EXPECT_EQ(result.from, FileKind::holdfast);
  EXPECT_EQ(result.to, ConvertTarget::npz);
  EXPECT_EQ(result.arrays, 6U);
  EXPECT_EQ(result.bytes, 3 * (6 + 3) * sizeof(float));
  EXPECT_THAT(result.notes, IsEmpty());
}

// What was read of a Keras model with a layer that Holdfast lacks.
ArraySet keras_model_with(const std::string& class_name, std::vector<NamedArray> arrays) {
  Json config = testing::sequential({testing::layer(class_name, "x")});
  config["config"]["build_input_shape"] = {nullptr, 2};
  const Json keras = {{"form", "archive"},
                      {"config", config.dump()},
                      {"paths", Json::object()},
                      {"optimizer", Json::array()},
                      {"groups", Json::object()}};
  return {.arrays = std::move(arrays), .metadata = Json{{"kind", "keras"}, {"keras", keras}}.dump()};
}

TEST_F(ConvertFile, SaysThatAModelCouldNotBeMade) {
  write("/d/a.h5", keras_model_with("ConvLSTM2D", {floats("model/x/kernel", {2, 3})}));
  write("/d/b.h5", keras_model_with("Flatten", {}));

  const Conversion arrays = convert("/d/a.h5", "/d/c.h5");
  const Conversion model = convert("/d/b.h5", "/d/d.h5");

  EXPECT_TRUE(arrays.lacks_model);
  EXPECT_EQ(arrays.arrays, 1U);
  EXPECT_THAT(arrays.notes, ElementsAre(HasSubstr("only the arrays are written, without the model: ")));
  EXPECT_FALSE(model.lacks_model);
}

TEST_F(ConvertFile, RenamesLayersWhoseNamesHoldfastDoesNotAccept) {
  ArraySet set = keras_model_with("Dense", {floats("model/größe b/bias", {3}), floats("model/größe b/kernel", {2, 3}),
                                            floats("optimizer/momentum/größe b/bias", {3})});
  Json metadata = Json::parse(set.metadata);
  Json config =
      testing::sequential({testing::layer("Dense", "größe b", {{"units", 3}}), testing::layer("ReLU", "gr__e_b")});
  config["config"]["build_input_shape"] = {nullptr, 2};
  metadata["keras"]["config"] = config.dump();
  metadata["keras"]["paths"] = {{"model/größe b/bias", "layers/dense/vars/1"}};
  set.metadata = metadata.dump();
  write("/d/a.h5", set);

  const Conversion result = convert("/d/a.h5", "/d/b.h5");

  EXPECT_FALSE(result.lacks_model);
  EXPECT_THAT(result.notes, ElementsAre(HasSubstr("is called \"gr__e_b_2\" here")));
  const ArraySet found = read_any(files_, "/d/b.h5");
  EXPECT_THAT(testing::names(found.arrays),
              ElementsAre("model/gr__e_b_2/bias", "model/gr__e_b_2/kernel", "optimizer/momentum/gr__e_b_2/bias"));
  const Json written = Json::parse(found.metadata);
  EXPECT_EQ(written["graph"]["layers"][0]["name"], "gr__e_b_2");
  EXPECT_TRUE(written["keras"]["paths"].contains("model/gr__e_b_2/bias"));
}

TEST_F(ConvertFile, WritesNoFileWithoutAModelAndArrays) {
  write("/d/a.h5", keras_model_with("ConvLSTM2D", {}));

  EXPECT_THAT(refusal("/d/a.h5", "/d/b.h5").sentence, HasSubstr("its layer \"x\" (\"ConvLSTM2D\") has no counterpart"));
}

TEST_F(ConvertFile, ReportsProgress) {
  write("/d/a.h5", dense_savepoint());
  std::vector<std::string> told;

  convert("/d/a.h5", "/d/b.h5", {.progress = [&](const std::string& what, std::uint64_t done, std::uint64_t total) {
            EXPECT_LE(done, total);
            if (told.empty() || told.back() != what) told.push_back(what);
          }});

  EXPECT_THAT(told, ElementsAre("reading /d/a.h5", "writing /d/b.h5"));
}

TEST_F(ConvertFile, CompressesAsAsked) {
  ArraySet set{.arrays = {{"zeros", DType::f32, {100'000}, std::vector<std::byte>(400'000)}}};
  write("/d/a.h5", set);

  convert("/d/a.h5", "/d/none.h5", {.compression = Compression::none});
  convert("/d/a.h5", "/d/zstd.h5", {.compression = Compression::zstd, .zstd_level = 19});

  EXPECT_EQ(ArrayFile::open(files_, "/d/none.h5").arrays()[0].storage, Storage::contiguous);
  EXPECT_EQ(ArrayFile::open(files_, "/d/zstd.h5").arrays()[0].storage, Storage::zstd);
  EXPECT_LT(files_.contents().at("/d/zstd.h5").size(), 50'000U);
}

TEST_F(ConvertFile, WarnsAboutBf16InNumPy) {
  write_array_file(files_, "/d/a.h5", "{}", views(std::vector{make_array("a", DType::bf16, {3})}));

  const Conversion result = convert("/d/a.h5", "/d/b.npz");

  EXPECT_THAT(result.notes, ElementsAre(HasSubstr("bf16")));
}

TEST_F(ConvertFile, GoesToKerasAndBackWithTheOptimizersState) {
  write("/d/a.h5", dense_savepoint());
  Json earlier = kDenseMetadata;
  earlier["step"] = 0;
  write("/d/like.h5", dense_savepoint("other", earlier));
  const std::vector<std::pair<std::string, ConvertTarget>> outputs = {{"/d/b.keras", ConvertTarget::keras},
                                                                      {"/d/b.weights.h5", ConvertTarget::keras_weights},
                                                                      {"/d/b.h5", ConvertTarget::keras_legacy}};
  for (const auto& [output, target] : outputs) {
    SCOPED_TRACE(output);

    const Conversion there = convert("/d/a.h5", output, {.to = target});
    const Conversion back = convert(output, output + "-back.h5", {.like = "/d/like.h5"});

    EXPECT_THAT(there.notes, ElementsAre(HasSubstr("the metadata that")));
    EXPECT_EQ(back.from, FileKind::keras);
    EXPECT_THAT(back.notes, IsEmpty());
    expect_equal(read_any(files_, output + "-back.h5"), dense_savepoint());
    EXPECT_EQ(Json::parse(read_any(files_, output + "-back.h5").metadata), kDenseMetadata);
  }
}

TEST_F(ConvertFile, TakesAveragesForTheWeights) {
  ArraySet averaged = dense_savepoint();
  for (const std::string array : {"bias", "kernel"}) {
    const std::vector<std::uint64_t> shape =
        array == "bias" ? std::vector<std::uint64_t>{3} : std::vector<std::uint64_t>{2, 3};
    averaged.arrays.push_back(floats("average of " + array, shape));
    averaged.arrays.back().name = "optimizer/moving_average/d/" + array;
  }
  write("/d/a.h5", averaged);

  convert("/d/a.h5", "/d/b.h5", {.takes_averages = true});
  convert("/d/a.h5", "/d/b.safetensors", {.to = ConvertTarget::pytorch, .takes_averages = true});

  ArraySet expected = averaged;
  expected.arrays[0].bytes = averaged.arrays[6].bytes;
  expected.arrays[1].bytes = averaged.arrays[7].bytes;
  std::ranges::sort(expected.arrays, {}, &NamedArray::name);
  expect_equal(read_any(files_, "/d/b.h5"), expected);
  convert("/d/a.h5", "/d/trained.safetensors", {.to = ConvertTarget::pytorch});
  EXPECT_NE(read_any(files_, "/d/b.safetensors").arrays[0].bytes,
            read_any(files_, "/d/trained.safetensors").arrays[0].bytes);
  write("/d/plain.h5", dense_savepoint());
  EXPECT_THAT(refusal("/d/plain.h5", "/d/c.npz", {.takes_averages = true}).sentence, HasSubstr("no moving averages"));
}

TEST_F(ConvertFile, SaysThatTheOptimizersStateIsLeftOut) {
  write("/d/a.h5", dense_savepoint());

  const Conversion weights = convert("/d/a.h5", "/d/b.h5", {.to = ConvertTarget::keras_legacy_weights});
  const Conversion torch = convert("/d/a.h5", "/d/b.safetensors", {.to = ConvertTarget::pytorch});

  for (const Conversion& result : {weights, torch}) {
    EXPECT_THAT(result.notes, ElementsAre("the optimizer's state (4 arrays) is left out", HasSubstr("metadata")));
    EXPECT_EQ(result.arrays, 2U);
  }
}

TEST_F(ConvertFile, NamesArraysThatTheOutputHasNoPlaceFor) {
  ArraySet set = dense_savepoint();
  set.arrays.insert(set.arrays.begin(), floats("extra", {1}));
  write("/d/a.h5", set);

  const Conversion torch = convert("/d/a.h5", "/d/b.safetensors", {.to = ConvertTarget::pytorch});
  const Conversion keras = convert("/d/a.h5", "/d/b.keras");

  EXPECT_THAT(torch.notes, ::testing::Contains(HasSubstr("\"extra\"")));
  EXPECT_THAT(keras.notes, ::testing::Contains(HasSubstr("\"extra\"")));
}

TEST_F(ConvertFile, MakesASavepointOfAStateDict) {
  write("/d/a.h5", dense_savepoint());
  write("/d/like.h5", dense_savepoint("other"));
  convert("/d/a.h5", "/d/b.safetensors", {.to = ConvertTarget::pytorch});
  ASSERT_THAT(names(read_any(files_, "/d/b.safetensors").arrays), ElementsAre("d.bias", "d.weight"));

  const Conversion result = convert("/d/b.safetensors", "/d/c.h5", {.like = "/d/like.h5"});

  expect_equal(read_any(files_, "/d/c.h5"), without_optimizer(dense_savepoint()));
  EXPECT_THAT(result.notes, ElementsAre("the optimizer's state of /d/like.h5 is left out, since /d/b.safetensors has "
                                        "none"));
}

TEST_F(ConvertFile, MakesKerasOfAStateDict) {
  write("/d/a.h5", dense_savepoint());
  convert("/d/a.h5", "/d/a.keras");
  convert("/d/a.h5", "/d/b.safetensors", {.to = ConvertTarget::pytorch});

  convert("/d/a.keras", "/d/c.safetensors", {.to = ConvertTarget::pytorch, .like = "/d/a.h5"});

  EXPECT_EQ(files_.contents().at("/d/c.safetensors"), files_.contents().at("/d/b.safetensors"));
}

TEST_F(ConvertFile, SaysThatKerasWeightsHaveNoOptimizerState) {
  write("/d/a.h5", dense_savepoint());
  convert("/d/a.h5", "/d/b.h5", {.to = ConvertTarget::keras_legacy_weights});

  const Conversion result = convert("/d/b.h5", "/d/c.h5", {.like = "/d/a.h5"});

  EXPECT_THAT(result.notes, ElementsAre("the optimizer's state is that of a new one, since /d/b.h5 has none"));
  expect_equal(without_optimizer(read_any(files_, "/d/c.h5")), without_optimizer(dense_savepoint()));
}

TEST_F(ConvertFile, SaysThatTheStateOfAnotherOptimizerIsLeftOut) {
  write("/d/a.h5", dense_savepoint());
  convert("/d/a.h5", "/d/b.keras");
  Json metadata = kDenseMetadata;
  metadata["configuration"]["optimizer"] = {{"kind", "sgd"}, {"learning_rate", 0.1}, {"momentum", 0.0}};
  write("/d/like.h5", without_optimizer(dense_savepoint("other", metadata)));

  const Conversion result = convert("/d/b.keras", "/d/c.h5", {.like = "/d/like.h5"});

  EXPECT_THAT(result.notes, ElementsAre(HasSubstr("does not fit the optimizer of /d/like.h5")));
}

TEST_F(ConvertFile, KnowsTheStateOfANewOptimizerThatIsNotZero) {
  write("/d/a.h5", dense_savepoint());
  convert("/d/a.h5", "/d/b.keras");
  Json metadata = kDenseMetadata;
  metadata["configuration"]["optimizer"] = {
      {"kind", "adagrad"}, {"learning_rate", 0.1}, {"initial_accumulator_value", 0.25}};
  ArraySet like = without_optimizer(dense_savepoint("other", metadata));
  like.arrays.push_back(floats("optimizer/accumulator/d/bias", {3}));
  like.arrays.push_back(floats("optimizer/accumulator/d/kernel", {2, 3}));
  write("/d/like.h5", like);

  const Conversion result = convert("/d/b.keras", "/d/c.h5", {.like = "/d/like.h5"});

  EXPECT_THAT(result.notes, ElementsAre(HasSubstr("does not fit the optimizer of /d/like.h5")));
}

TEST_F(ConvertFile, MatchesArraysWithoutMetadataByName) {
  const ArraySet set = dense_savepoint();
  write_npz(files_, "/d/a.npz", "{}", views(set.arrays));
  write("/d/like.h5", zeroed(dense_savepoint()));

  convert("/d/a.npz", "/d/b.h5", {.like = "/d/like.h5"});

  expect_equal(read_any(files_, "/d/b.h5"), set);
  EXPECT_EQ(read_any(files_, "/d/b.h5").metadata, set.metadata);
}

TEST_F(ConvertFile, ConvertsAnOptimizersStateWholeOrNotAtAll) {
  ArraySet set = dense_savepoint();
  set.arrays.pop_back();
  write_npz(files_, "/d/a.npz", "{}", views(set.arrays));
  write("/d/like.h5", zeroed(dense_savepoint()));

  const Conversion result = convert("/d/a.npz", "/d/b.h5", {.like = "/d/like.h5"});

  expect_equal(read_any(files_, "/d/b.h5"), without_optimizer(set));
  EXPECT_THAT(result.notes, ElementsAre(HasSubstr("does not fit the optimizer")));
}

TEST_F(ConvertFile, RefusesArraysOfAnotherModel) {
  write("/d/like.h5", dense_savepoint());
  ArraySet other = dense_savepoint();
  other.arrays[1] = floats("model/d/kernel", {2, 4});
  write("/d/shape.h5", other);
  other = dense_savepoint();
  other.arrays.erase(other.arrays.begin());
  write("/d/missing.h5", other);
  other = dense_savepoint();
  other.arrays.insert(other.arrays.begin() + 2, floats("model/e/kernel", {2}));
  write("/d/more.h5", other);

  const auto sentence = [&](const std::string& input) {
    const Thrown thrown = refusal(input, "/d/out.h5", {.like = "/d/like.h5"});
    EXPECT_EQ(thrown.code, ErrorCode::incompatible);
    return thrown.sentence;
  };

  EXPECT_THAT(sentence("/d/shape.h5"),
              HasSubstr("\"model/d/kernel\" is f32 [2, 4] where the savepoint has f32 [2, 3]"));
  EXPECT_THAT(sentence("/d/missing.h5"), HasSubstr("\"model/d/bias\" is missing"));
  EXPECT_THAT(sentence("/d/more.h5"), HasSubstr("\"model/e/kernel\""));
}

TEST_F(ConvertFile, AsksForASavepointWhereArraysDoNotSayTheirLayers) {
  write_array_file(files_, "/d/a.h5", "{}", views(small_arrays()));

  for (const Thrown& thrown : {refusal("/d/a.h5", "/d/b.keras"), refusal("/d/a.h5", "/d/b.weights.h5"),
                               refusal("/d/a.h5", "/d/b.safetensors", {.to = ConvertTarget::pytorch})}) {
    EXPECT_EQ(thrown.code, ErrorCode::invalid_argument);
    EXPECT_THAT(thrown.sentence, HasSubstr("--like"));
    EXPECT_THAT(thrown.sentence, HasSubstr("/d/a.h5"));
  }
}

TEST_F(ConvertFile, NamesTheFilesWhoseArraysDoNotFit) {
  Json metadata = kDenseMetadata;
  metadata["graph"] = {{"format", "mine"}};
  write("/d/a.h5", dense_savepoint("", metadata));
  write("/d/b.h5", dense_savepoint());

  EXPECT_THAT(refusal("/d/a.h5", "/d/c.keras").sentence, HasSubstr("cannot convert /d/a.h5 to /d/c.keras: "));
  EXPECT_THAT(refusal("/d/a.h5", "/d/c.safetensors", {.to = ConvertTarget::pytorch}).sentence,
              HasSubstr("cannot convert /d/a.h5 to /d/c.safetensors: "));
  convert("/d/b.h5", "/d/b.keras");
  EXPECT_THAT(refusal("/d/b.keras", "/d/c.h5", {.like = "/d/a.h5"}).sentence,
              HasSubstr("cannot convert /d/b.keras to /d/c.h5 like /d/a.h5: "));
}

TEST_F(ConvertFile, RefusesLikeFilesThatAreNotSavepoints) {
  write("/d/a.h5", dense_savepoint());
  write_array_file(files_, "/d/like.h5", "{}", views(small_arrays()));

  const Thrown thrown = refusal("/d/a.h5", "/d/b.h5", {.like = "/d/like.h5"});

  EXPECT_EQ(thrown.code, ErrorCode::invalid_argument);
  EXPECT_THAT(thrown.sentence, HasSubstr("/d/like.h5 is not a savepoint"));
}

TEST_F(ConvertFile, ReplacesAFileOnlyWhenAsked) {
  write("/d/a.h5", dense_savepoint());
  write("/d/b.h5", dense_savepoint("other"));

  const Thrown thrown = refusal("/d/a.h5", "/d/b.h5");
  convert("/d/a.h5", "/d/b.h5", {.replaces_output = true});

  EXPECT_THAT(thrown.sentence, HasSubstr("/d/b.h5 exists"));
  EXPECT_EQ(files_.contents().at("/d/b.h5"), files_.contents().at("/d/a.h5"));
}

TEST_F(ConvertFile, MayReplaceItsInput) {
  write("/d/a.h5", dense_savepoint());

  convert("/d/a.h5", "/d/a.h5", {.replaces_output = true, .compression = Compression::none});

  expect_equal(read_any(files_, "/d/a.h5"), dense_savepoint());
}

TEST_F(ConvertFile, RefusesNamesByWhichKerasWouldNotLoad) {
  write("/d/a.h5", dense_savepoint());

  EXPECT_THAT(refusal("/d/a.h5", "/d/b.h5", {.to = ConvertTarget::keras}).sentence, HasSubstr(".keras"));
  EXPECT_THAT(refusal("/d/a.h5", "/d/b.h5", {.to = ConvertTarget::keras_weights}).sentence, HasSubstr(".weights.h5"));
  EXPECT_THAT(refusal("/d/a.h5", "/d/b.weights.h5", {.to = ConvertTarget::keras_legacy}).sentence, HasSubstr(".h5"));
  EXPECT_THAT(refusal("/d/a.h5", "/d/b", {.to = ConvertTarget::keras_legacy_weights}).sentence, HasSubstr(".h5"));
}

// Regression: the sentence was as long as the name.
TEST_F(ConvertFile, CutsEndlessNamesInItsSentences) {
  const std::vector<std::byte> element(4);
  const std::vector<ArrayView> arrays = {{std::string(5'000'000, 'x'), DType::f32, {1}, element}};
  write_safetensors(files_, "/d/long.safetensors", "{}", arrays);
  for (const std::string output : {"/d/long.h5", "/d/long.npz"}) {
    const Thrown thrown = thrown_by([&] { convert_file(files_, "/d/long.safetensors", output); });

    EXPECT_EQ(thrown.code, ErrorCode::invalid_argument);
    EXPECT_LT(thrown.sentence.size(), 600U);
    EXPECT_THAT(thrown.sentence, HasSubstr("xxx...\""));
  }
}

TEST_F(ConvertFile, RefusesAMissingOrDamagedInput) {
  write("/d/a.h5", dense_savepoint());
  std::vector<std::byte> bytes = files_.contents().at("/d/a.h5");
  bytes[bytes.size() - 1] ^= std::byte{1};
  bytes[600] ^= std::byte{1};
  files_.create("/d/damaged.h5")->write_at(0, std::span(bytes).first(bytes.size() / 2));

  EXPECT_EQ(refusal("/d/missing.h5", "/d/b.npz").code, ErrorCode::not_found);
  EXPECT_EQ(refusal("/d/damaged.h5", "/d/b.npz").code, ErrorCode::invalid_file);
}

TEST(ConvertTargets, AreKnownByTheEndOfAName) {
  EXPECT_EQ(convert_target_for("a.h5"), ConvertTarget::holdfast);
  EXPECT_EQ(convert_target_for("a.weights.h5"), ConvertTarget::keras_weights);
  EXPECT_EQ(convert_target_for("a.keras"), ConvertTarget::keras);
  EXPECT_EQ(convert_target_for("a.safetensors"), ConvertTarget::safetensors);
  EXPECT_EQ(convert_target_for("a.npz"), ConvertTarget::npz);
  const Thrown thrown = thrown_by([] { convert_target_for("a.pt"); });
  EXPECT_EQ(thrown.code, ErrorCode::invalid_argument);
  EXPECT_THAT(thrown.sentence, HasSubstr("--to"));
}

TEST(ConvertTargets, HaveNames) {
  for (int i = 0; i <= static_cast<int>(ConvertTarget::keras_legacy); ++i) {
    const auto target = static_cast<ConvertTarget>(i);
    EXPECT_EQ(convert_target_from_name(name(target)), target);
  }
  const Thrown thrown = thrown_by([] { convert_target_from_name("tensorflow"); });
  EXPECT_EQ(thrown.code, ErrorCode::invalid_argument);
  EXPECT_THAT(thrown.sentence, HasSubstr("keras-legacy-weights"));
}

}  // namespace
}  // namespace holdfast::format
