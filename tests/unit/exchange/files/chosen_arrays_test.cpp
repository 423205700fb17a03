// Chosen arrays of a file are read whatever else it holds. HDF5 files of the tests were made by h5py (make_files.py).

#include "holdfast/format/exchange/chosen_arrays.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "holdfast/base/elements.h"
#include "holdfast/base/error.h"
#include "holdfast/format/exchange/any_file.h"
#include "holdfast/format/exchange/npz.h"
#include "support/program.h"
#include "unit/exchange/support/impostor_reader.h"
#include "unit/exchange/support/npy_builder.h"
#include "unit/exchange/support/trees.h"
#include "unit/format/support/array_files.h"

namespace holdfast::format {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::vector<std::string> listed_names(std::span<const ArrayInfo> arrays) {
  std::vector<std::string> names;
  for (const ArrayInfo& array : arrays) names.push_back(array.name);
  return names;
}

ChosenArrays chosen_of(const std::string& file, const std::vector<std::string>& names) {
  return ChosenArrays(posix_file_system(), testing::path_of(file), ArrayFileKind::hdf5, names);
}

TEST(ChosenArrays, AreReadFromHdf5WhateverElseTheFileHolds) {
  const ChosenArrays chosen = chosen_of("mixed_content.h5", {"y", "train/x"});
  const std::vector<std::byte> y = chosen.read(0);

  ASSERT_EQ(y.size(), 12U);
  EXPECT_EQ(PlainElement<std::int32_t>::load(y.data() + 8), 9);
  EXPECT_THAT(chosen.arrays()[1].shape, ElementsAre(3, 2));
  EXPECT_FALSE(chosen.stored(0).has_value());
}

TEST(ChosenArrays, AreReadFromEachGoodDatasetInABadFile) {
  // Each of these files is refused as a whole for one object. Nothing of it is asked for here.
  for (const std::string name : {"soft_link", "external_link", "virtual", "external_storage", "lzf_filter", "compound",
                                 "enumeration", "named_type", "table_of_strings", "no_shape", "long_double"}) {
    for (const std::string structures : {"_earliest.h5", "_v110.h5", "_dense.h5"}) {
      const AnyFile file =
          AnyFile::open(posix_file_system(), testing::path_of(name + structures), {.allow_unreadable = true});
      EXPECT_FALSE(file.unreadable().empty()) << name << structures;
    }
  }
}

TEST(ChosenArrays, AreTheOnesThatThePartialListOfTheFileNames) {
  const AnyFile file =
      AnyFile::open(posix_file_system(), testing::path_of("mixed_content.h5"), {.allow_unreadable = true});

  EXPECT_THAT(listed_names(file.arrays()), ::testing::IsSupersetOf({"train/x"}));
  for (const char* problem : {"\"records\"", "\"words\"", "\"elsewhere\"", "\"far_away\"", "\"lzf\"", "\"type\"",
                              "\"reference\"", "attribute \"units\""}) {
    EXPECT_THAT(file.unreadable(), Contains(HasSubstr(problem)));
  }
}

TEST(ChosenArrays, WithoutThePartialListAFileIsStillRefusedAsAWhole) {
  const testing::Thrown thrown =
      testing::thrown_by([] { AnyFile::open(posix_file_system(), testing::path_of("mixed_content.h5")); });

  EXPECT_EQ(thrown.code, ErrorCode::invalid_file);
}

TEST(ChosenArrays, AreRefusedFromADamagedFile) {
  std::vector<std::byte> bytes = testing::read_bytes(testing::path_of("mixed_content.h5"));
  bytes.resize(bytes.size() / 2);
  TemporaryFolder folder;
  testing::write_bytes(folder / "a.h5", bytes);

  const testing::Thrown thrown =
      testing::thrown_by([&] { ChosenArrays(posix_file_system(), folder / "a.h5", ArrayFileKind::hdf5, {"y"}); });

  EXPECT_EQ(thrown.code, ErrorCode::invalid_file);
  EXPECT_THAT(thrown.sentence, HasSubstr("cut off"));
}

TEST(ChosenArrays, FollowTheUserBlockOfMatlab) {
  EXPECT_EQ(recognise(posix_file_system(), testing::path_of("matlab_user_block.mat")), FileKind::hdf5);
  EXPECT_EQ(chosen_of("matlab_user_block.mat", {"x"}).read(0).size(), 16U);
}

// Before there was a 7.3, the text named 7.0.
TEST(ChosenArrays, FollowTheUserBlockOfAnEarlyMatlab) {
  TemporaryFolder folder;
  const std::string path = folder / "early.mat";
  std::filesystem::copy_file(testing::path_of("matlab_user_block.mat"), path);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(0) << "MATLAB 7.0 MAT-file";

  EXPECT_EQ(recognise(posix_file_system(), path), FileKind::hdf5);
}

TEST(ChosenArrays, RefuseAnotherTextWhereHoldfastHasItsHeader) {
  TemporaryFolder folder;
  const std::string path = folder / "other.mat";
  std::filesystem::copy_file(testing::path_of("matlab_user_block.mat"), path);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(0) << "MATLAB 7.3 of some kind";

  EXPECT_THROW(recognise(posix_file_system(), path), Error);
}

TEST(ChosenArrays, SayWhereTheyLieInAnUncompressedArchive) {
  TemporaryFolder folder;
  const std::vector<testing::Array> arrays = {testing::make_array("w", DType::f32, {2, 3})};
  write_npz(posix_file_system(), folder / "a.npz", "{}", views(arrays));

  const ChosenArrays chosen(posix_file_system(), folder / "a.npz", ArrayFileKind::npz, {"w"});

  ASSERT_TRUE(chosen.stored(0).has_value());
  const std::vector<std::byte> file = testing::read_bytes(folder / "a.npz");
  EXPECT_EQ(std::memcmp(file.data() + chosen.stored(0)->offset, arrays[0].bytes.data(), arrays[0].bytes.size()), 0);
  EXPECT_EQ(chosen.read(0), arrays[0].bytes);
}

TEST(ChosenArrays, AreReadFromASavepointByItsOwnReader) {
  TemporaryFolder folder;
  const std::vector<testing::Array> arrays = {testing::make_array("w", DType::f32, {2, 3})};
  write_array_file(posix_file_system(), folder / "a.h5", "{}", views(arrays));

  const ChosenArrays chosen(posix_file_system(), folder / "a.h5", ArrayFileKind::hdf5, {"w"});

  EXPECT_EQ(chosen.read(0), arrays[0].bytes);
}

TEST(ChosenArrays, OfHdf5AreReadInAnyOrderAndAgain) {
  const ChosenArrays chosen = chosen_of("mixed_content.h5", {"y", "train/x", "/y"});
  const std::vector<std::byte> y = chosen.read(0);

  EXPECT_EQ(chosen.read(2), y);
  EXPECT_EQ(chosen.read(1).size(), 6 * size_bytes(chosen.arrays()[1].dtype));
  EXPECT_EQ(chosen.read(0), y);
}

TEST(ChosenArrays, OfAnNpyHaveNoName) {
  TemporaryFolder folder;
  testing::write_bytes(folder / "a.npy", testing::npy(testing::dictionary("<u2", "(3,)"), "abcdef"));
  const auto choose = [&](const std::vector<std::string>& names) {
    return ChosenArrays(posix_file_system(), folder / "a.npy", ArrayFileKind::npy, names);
  };

  const testing::Thrown thrown = testing::thrown_by([&] { choose({"x"}); });

  EXPECT_EQ(thrown.code, ErrorCode::not_found);
  EXPECT_THAT(thrown.sentence, HasSubstr("a.npy has no array \"x\": a .npy file has one array, without a name"));
  EXPECT_EQ(choose({"", ""}).arrays().size(), 2U);
  EXPECT_EQ(choose({"", ""}).read(1).size(), 6U);
}

class ChosenArraysOfAnImpostor : public ::testing::Test {
 protected:
  ChosenArrays choose(const std::vector<std::string>& names) const {
    write_hdf5_tree(posix_file_system(), folder_ / "a.h5", testing::every_kind_of_content());
    return ChosenArrays(posix_file_system(), folder_ / "a.h5", ArrayFileKind::hdf5, names, {.max_bytes = 1 << 20});
  }

  const TemporaryFolder folder_;
  const testing::ImpostorReader impostor_{folder_};
};

// All chosen arrays were read with the first, also those above the limit.
TEST_F(ChosenArraysOfAnImpostor, AboveTheLimitAreNeverAskedFor) {
  impostor_.send("heads", {{"x", DType::u8, {4}, {}}, {"y", DType::u8, {2 << 20}, {}}});
  impostor_.send("elements", {testing::make_numbers("x", DType::u8, {4})});
  const ChosenArrays chosen = choose({"x", "y"});

  EXPECT_EQ(chosen.read(0).size(), 4U);
  EXPECT_EQ(testing::thrown_by([&] { chosen.read(1); }).code, ErrorCode::out_of_memory);
  EXPECT_THAT(read_file(folder_ / "requests"), ::testing::EndsWith("readable x\n"));
}

// The check for this was an assertion, and looked at the shape alone.
TEST_F(ChosenArraysOfAnImpostor, ThatDifferFromTheirHeadsAreRefused) {
  impostor_.send("heads", {{"x", DType::i32, {2}, {}}});
  const std::vector<std::vector<NamedArray>> answers = {
      {testing::make_numbers("x", DType::f32, {2})},
      {testing::make_numbers("x", DType::i32, {3})},
      {testing::make_numbers("y", DType::i32, {2})},
      {testing::make_numbers("x", DType::i32, {2}), testing::make_numbers("y", DType::i32, {2})},
      {}};
  for (std::size_t i = 0; i < answers.size(); ++i) {
    impostor_.send("elements", answers[i]);

    const testing::Thrown thrown = testing::thrown_by([&] { choose({"x"}).read(0); });

    EXPECT_EQ(thrown.code, ErrorCode::invalid_file) << i;
    EXPECT_THAT(thrown.sentence, HasSubstr("a.h5 is refused")) << i;
    EXPECT_THAT(thrown.sentence, HasSubstr("announced")) << i;
  }
}

}  // namespace
}  // namespace holdfast::format
