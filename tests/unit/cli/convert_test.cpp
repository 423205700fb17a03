// `holdfast convert` on files in memory: kinds of files, compression, and what it prints.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/format/exchange/any_file.h"
#include "unit/cli/support/command_test.h"

namespace holdfast::cli {
namespace {

using format::FileKind;
using format::Storage;
using ::testing::HasSubstr;

constexpr const char* kSavepoint = R"({"kind": "savepoint", "step": 5,
    "configuration": {"optimizer": {"kind": "sgd", "learning_rate": 0.1, "momentum": 0.9},
                      "loss": {"kind": "mean_squared_error"}},
    "graph": {"format": "holdfast.sequential", "version": 1, "input_shape": [2],
              "layers": [{"kind": "Dense", "name": "d", "config": {"units": 1, "use_bias": false}}]}})";

class Convert : public testing::CommandTest {
 protected:
  Convert() {
    write("/d/a.h5", {{"model/d/kernel", {2, 1}, {1, 2}}, {"optimizer/momentum/d/kernel", {2, 1}, {3, 4}}}, kSavepoint);
  }
};

TEST_F(Convert, SaysWhatItWroteAndLeftOut) {
  EXPECT_EQ(run({"convert", "/d/a.h5", "/d/b.safetensors", "--to", "pytorch"}), kDone);

  EXPECT_THAT(out(), HasSubstr("wrote /d/b.safetensors (pytorch): 1 array, 8 bytes, from /d/a.h5 (holdfast)\n"));
  EXPECT_THAT(out(), HasSubstr("note: the optimizer's state (1 array) is left out\n"));
  EXPECT_EQ(problems(), "");
}

TEST_F(Convert, ChoosesTheKindByTheNameOfTheOutput) {
  for (const auto& [output, kind] :
       std::vector<std::pair<std::string, FileKind>>{{"/d/b.npz", FileKind::npz},
                                                     {"/d/b.safetensors", FileKind::safetensors},
                                                     {"/d/b.keras", FileKind::keras},
                                                     {"/d/b.weights.h5", FileKind::hdf5},
                                                     {"/d/b.h5", FileKind::holdfast}}) {
    EXPECT_EQ(run({"convert", "/d/a.h5", output}), kDone) << problems();

    EXPECT_EQ(format::recognise(files_, output), kind) << output;
  }
}

TEST_F(Convert, TurnsWeightsBackIntoASavepoint) {
  ASSERT_EQ(run({"convert", "/d/a.h5", "/d/b.keras"}), kDone);

  EXPECT_EQ(run({"convert", "/d/b.keras", "/d/c.h5", "--like", "/d/a.h5"}), kDone) << problems();

  EXPECT_EQ(run({"diff", "/d/a.h5", "/d/c.h5"}), kDone) << out();
}

TEST_F(Convert, EndsWith1WhenOnlyArraysOfAModelAreWritten) {
  const std::string keras = R"({"kind": "keras", "keras": {"form": "archive", "paths": {}, "optimizer": [],
      "groups": {}, "config": "{\"class_name\": \"Own\", \"config\": {}}"}})";
  write("/d/keras.h5", {{"model/x", {1}, {1}}}, keras);

  EXPECT_EQ(run({"convert", "/d/keras.h5", "/d/b.h5"}), kWithoutModel) << problems();

  EXPECT_THAT(out(), HasSubstr("note: only the arrays are written, without the model"));
  EXPECT_TRUE(files_.exists("/d/b.h5"));
}

TEST_F(Convert, CompressesAsAsked) {
  write("/d/large.h5", {{"x", {20'000}, std::vector<float>(20'000, 1)}});
  const auto storage = [&](const std::string& path) {
    return format::ArrayFile::open(files_, path).arrays()[0].storage;
  };

  ASSERT_EQ(run({"convert", "/d/large.h5", "/d/none.h5", "--compression", "none"}), kDone);
  ASSERT_EQ(run({"convert", "/d/large.h5", "/d/fast.h5"}), kDone);
  ASSERT_EQ(run({"convert", "/d/large.h5", "/d/zstd.h5", "--level", "3"}), kDone);
  ASSERT_EQ(run({"convert", "/d/large.h5", "/d/zstd3.h5", "--compression", "zstd", "--level", "3"}), kDone);

  EXPECT_EQ(storage("/d/none.h5"), Storage::contiguous);
  EXPECT_EQ(storage("/d/fast.h5"), Storage::zstd);
  EXPECT_NE(files_.contents().at("/d/zstd.h5"), files_.contents().at("/d/fast.h5"));
  EXPECT_EQ(files_.contents().at("/d/zstd.h5"), files_.contents().at("/d/zstd3.h5"));
}

TEST_F(Convert, RefusesACompressionThatDoesNotFit) {
  EXPECT_EQ(run({"convert", "/d/a.h5", "/d/b.h5", "--compression", "fast", "--level", "3"}), kNotDone);
  EXPECT_THAT(problems(), HasSubstr("--level"));
  EXPECT_EQ(run({"convert", "/d/a.h5", "/d/b.npz", "--compression", "zstd"}), kNotDone);
  EXPECT_THAT(problems(), HasSubstr("npz"));
  EXPECT_EQ(run({"convert", "/d/a.h5", "/d/b.h5", "--compression", "gzip"}), kNotDone);
  EXPECT_EQ(run({"convert", "/d/a.h5", "/d/b.h5", "--level", "23"}), kNotDone);
  EXPECT_FALSE(files_.exists("/d/b.h5"));
}

TEST_F(Convert, ReplacesAFileOnlyWithForce) {
  write("/d/b.h5", {{"x", {1}, {1}}});
  const FileContents before = files_.contents();

  EXPECT_EQ(run({"convert", "/d/a.h5", "/d/b.h5"}), kNotDone);
  EXPECT_THAT(problems(), HasSubstr("/d/b.h5 exists"));
  EXPECT_THAT(problems(), HasSubstr("--force"));
  EXPECT_EQ(files_.contents(), before);
  EXPECT_EQ(run({"convert", "/d/a.h5", "/d/b.h5", "--force"}), kDone);
  EXPECT_EQ(files_.contents().at("/d/b.h5"), files_.contents().at("/d/a.h5"));
}

TEST_F(Convert, ListsTheKindsOfFiles) {
  EXPECT_EQ(run({"convert", "/d/a.h5", "/d/b.h5", "--to", "onnx"}), kNotDone);
  EXPECT_THAT(problems(), HasSubstr("keras-legacy-weights"));
  EXPECT_EQ(run({"convert", "/d/a.h5", "/d/b.onnx"}), kNotDone);
  EXPECT_THAT(problems(), HasSubstr("--to"));
}

}  // namespace
}  // namespace holdfast::cli
