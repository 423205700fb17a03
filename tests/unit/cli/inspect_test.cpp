// `holdfast inspect` on files in memory, as text and as JSON.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "holdfast/base/whole_file.h"
#include "holdfast/format/exchange/npz.h"
#include "holdfast/format/exchange/safetensors.h"
#include "support/folders.h"
#include "unit/cli/support/command_test.h"

namespace holdfast::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using Inspect = testing::CommandTest;

constexpr const char* kMetadata =
    R"({"kind": "savepoint", "holdfast": "0.1", "step": 120, "epoch": 2, "seed": 7,
        "configuration": {"optimizer": {"kind": "adam"}}})";

TEST_F(Inspect, ShowsArraysAndTheStateOfTheTraining) {
  write("/d/a.h5", {{"model/d/kernel", {2, 2}, {1, 2, 3, 4}}, {"model/d/bias", {2}, {1, 2}}}, kMetadata);

  ASSERT_EQ(run({"inspect", "/d/a.h5"}), kDone);

  EXPECT_THAT(out(), HasSubstr("format     Holdfast, version 2\n"));
  EXPECT_THAT(out(), HasSubstr("2 arrays with 6 elements in 24 bytes"));
  EXPECT_THAT(out(), HasSubstr("kind       savepoint\n"));
  EXPECT_THAT(out(), HasSubstr("made by    Holdfast 0.1\n"));
  EXPECT_THAT(out(), HasSubstr("step       120\n"));
  EXPECT_THAT(out(), HasSubstr("epoch      2\n"));
  EXPECT_THAT(out(), HasSubstr("seed       7\n"));
  EXPECT_THAT(out(), HasSubstr("optimizer  adam\n"));
  EXPECT_THAT(out(), HasSubstr("name            type  shape   bytes  stored  ratio  storage\n"
                               "model/d/bias    f32   [2]         8       8   1.00  contiguous\n"
                               "model/d/kernel  f32   [2, 2]     16      16   1.00  contiguous\n"));
  EXPECT_EQ(problems(), "");
}

TEST_F(Inspect, ShowsTheLayersOfAModel) {
  write("/d/a.h5", {{"a", {1}, {1}}},
        R"({"kind": "savepoint", "graph": {"format": "holdfast.model", "version": 1,
            "inputs": [{"name": "x", "shape": [2], "dtype": "f32"}],
            "layers": [{"name": "encoder/dense", "kind": "Dense"}, {"name": "sum", "kind": "Add"}],
            "calls": [{"layer": 0, "inputs": [[-1, 0]]}, {"layer": 1, "inputs": [[0, 0], [-1, 0]]}],
            "outputs": [[1, 0]]}})");

  ASSERT_EQ(run({"inspect", "/d/a.h5"}), kDone);

  EXPECT_THAT(out(), HasSubstr("\n"
                               "layer          kind   called on\n"
                               "encoder/dense  Dense  x\n"
                               "sum            Add    encoder/dense, x\n"
                               "\n"
                               "name  type"));
}

TEST_F(Inspect, ListsTheTextsThatAModelCarries) {
  write("/d/a.h5", {{"a", {1}, {1}}}, R"({"kind": "weights", "attached": {"classes": "a\nb", "odd": 3}})");

  ASSERT_EQ(run({"inspect", "/d/a.h5"}), kDone);

  EXPECT_THAT(out(), HasSubstr("attached   classes (3 bytes), odd (0 bytes)\n"));
}

TEST_F(Inspect, PrintsJson) {
  write("/d/a.h5", {{"a", {2, 1}, {1, 2}}}, kMetadata);

  ASSERT_EQ(run({"inspect", "/d/a.h5", "--json"}), kDone);

  const nlohmann::json found = nlohmann::json::parse(out());
  const format::ArrayFile file = format::ArrayFile::open(files_, "/d/a.h5");
  EXPECT_EQ(found.at("file"), "/d/a.h5");
  EXPECT_EQ(found.at("format"), "holdfast");
  EXPECT_EQ(found.at("format_version"), format::kFormatVersion);
  EXPECT_EQ(found.at("digest"), file.file_digest().hex());
  EXPECT_EQ(found.at("file_bytes"), file.file_bytes());
  EXPECT_EQ(found.at("array_bytes"), 8);
  EXPECT_EQ(found.at("metadata"), nlohmann::json::parse(kMetadata));
  const nlohmann::json array = {{"name", "a"},
                                {"type", "f32"},
                                {"shape", {2, 1}},
                                {"bytes", 8},
                                {"stored_bytes", 8},
                                {"storage", "contiguous"},
                                {"digest", file.arrays()[0].digest.hex()}};
  EXPECT_EQ(found.at("arrays"), nlohmann::json::array({array}));
}

TEST_F(Inspect, ReadsOnlyTheIndex) {
  write("/d/a.h5", {{"a", {20'000}, std::vector<float>(20'000, 0.1F)}});
  std::uint64_t bytes_read = 0;
  const auto watched = watched_file_system(files_, [&](const FileOperation& operation) {
    if (operation.name == "read") bytes_read += operation.bytes;
  });
  std::ostringstream out;
  Console console{.out = out, .problems = out};

  EXPECT_EQ(run_command({"inspect", "/d/a.h5"}, *watched, console), kDone);

  EXPECT_LT(bytes_read, 20'000U);
}

TEST_F(Inspect, ShowsFilesOfOtherPrograms) {
  const std::vector<std::byte> bytes(4);
  const std::vector<format::ArrayView> arrays = {{"w", DType::bf16, {2}, bytes}};
  format::write_safetensors(files_, "/d/a", R"({"format":"pt"})", arrays);
  format::write_npz(files_, "/d/b", "{}", arrays);

  ASSERT_EQ(run({"inspect", "/d/a"}), kDone);
  EXPECT_THAT(out(), HasSubstr("format     safetensors\n"));
  EXPECT_THAT(out(), HasSubstr("safetensors for \"pt\""));
  EXPECT_THAT(out(), HasSubstr("w     bf16  [2]        4"));
  ASSERT_EQ(run({"inspect", "/d/b"}), kDone);
  EXPECT_THAT(out(), HasSubstr("format     NumPy .npz\n"));
  EXPECT_THAT(out(), HasSubstr("w     bf16  [2]        4"));
}

TEST_F(Inspect, ShowsTheArrayOfAnNpyFile) {
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
  write_text("/d/a",
             "\x93NUMPY" + std::string{'\1', '\0', static_cast<char>(header.size()), '\0'} + header + "12345678");

  ASSERT_EQ(run({"inspect", "/d/a"}), kDone);
  EXPECT_THAT(out(), HasSubstr("format     NumPy .npy\n"));
  EXPECT_THAT(out(), HasSubstr("arr_0  f32   [2]        8       8   1.00  -\n"));
  ASSERT_EQ(run({"convert", "/d/a", "/d/b.npz"}), kDone);
  ASSERT_EQ(run({"inspect", "--json", "/d/b.npz"}), kDone);
  EXPECT_EQ(nlohmann::json::parse(out()).at("arrays").at(0).at("name"), "arr_0");
}

TEST_F(Inspect, ShowsWhatCanBeReadOfAnHdf5FileAndNamesTheRest) {
  const std::string path = source_folder() + "/tests/unit/exchange/foreign_hdf5/files/mixed_content.h5";
  const std::string content = read_text_file(posix_file_system(), path);
  write_text("/d/a.h5", content);

  ASSERT_EQ(run({"inspect", "/d/a.h5"}), kDone);
  EXPECT_THAT(out(), HasSubstr("train/x"));
  EXPECT_THAT(out(), HasSubstr("not read: \"records\" has elements of an unsupported type (compounds)\n"));
  ASSERT_EQ(run({"inspect", "--json", "/d/a.h5"}), kDone);
  const nlohmann::json description = nlohmann::json::parse(out());
  EXPECT_GE(description["not_read"].size(), 7U);
  EXPECT_EQ(run({"stats", "/d/a.h5"}), kNotDone);
}

TEST_F(Inspect, PrintsNoTerminalCommandsFromAFile) {
  write("/d/a.h5", {{"a\x1b[2J", {1}, {1}}}, R"({"kind": "\u001b[2J"})");

  ASSERT_EQ(run({"inspect", "/d/a.h5"}), kDone);

  EXPECT_THAT(out(), Not(HasSubstr("\x1b")));
}

TEST_F(Inspect, SaysWhatIsWrong) {
  write_text("/d/text", "Hello");

  EXPECT_EQ(run({"inspect", "/d/missing"}), kNotDone);
  EXPECT_THAT(problems(), MatchesRegex("holdfast: .*/d/missing.*\n"));
  EXPECT_EQ(run({"inspect", "/d/text"}), kNotDone);
  EXPECT_THAT(problems(), MatchesRegex("holdfast: /d/text is not a file that Holdfast reads.*\n"));
  EXPECT_EQ(out(), "");
}

}  // namespace
}  // namespace holdfast::cli
