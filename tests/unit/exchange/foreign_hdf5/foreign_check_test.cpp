// The check before HDF5: which files it passes, which it refuses without HDF5, and what it leaves to the helper.

#include "foreign_hdf5/foreign_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string_view>

#include "support/folders.h"
#include "unit/exchange/support/trees.h"

namespace holdfast::format {
namespace {

using ::testing::HasSubstr;

std::string sentence_about(const std::vector<std::byte>& file, const TreeLimits& limits = {}) {
  return testing::thrown_by([&] { check_foreign_hdf5(file, limits); }).sentence;
}

// Returns the offsets of all structures with this signature.
std::vector<std::size_t> find_all(const std::vector<std::byte>& file, std::string_view signature) {
  std::vector<std::size_t> found;
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  for (std::size_t i = text.find(signature); i != std::string_view::npos; i = text.find(signature, i + 1)) {
    found.push_back(i);
  }
  return found;
}

void put(std::vector<std::byte>& file, std::size_t offset, std::uint64_t value) {
  for (std::size_t i = 0; i < sizeof value; ++i) file.at(offset + i) = static_cast<std::byte>(value >> (8 * i));
}

// These files must never reach HDF5.
TEST(ForeignCheck, FindsWithoutHdf5WhatItsHeaderSays) {
  for (const std::string name : {"soft_link", "external_link", "virtual", "external_storage", "unknown_filter",
                                 "lzf_filter", "declared_terabytes", "contiguous_terabytes", "beyond_64_bits",
                                 "deep_groups", "cycle", "cycle_to_root", "second_name", "name_with_dots"}) {
    for (const std::string structures : {"_earliest.h5", "_v110.h5"}) {
      const std::vector<std::byte> file = testing::read_bytes(testing::path_of(name + structures));

      EXPECT_EQ(testing::thrown_by([&] { check_foreign_hdf5(file, {}); }).code, ErrorCode::invalid_file) << name;
    }
  }
}

TEST(ForeignCheck, PassesGoodFiles) {
  for (const char* name : {"all_kinds_earliest.h5", "all_kinds_v110.h5", "user_block.h5"}) {
    EXPECT_NO_THROW(check_foreign_hdf5(testing::read_bytes(testing::path_of(name)), {})) << name;
  }
  EXPECT_NO_THROW(check_foreign_hdf5(compose_hdf5_tree("a.h5", testing::every_kind_of_content()), {}));
}

TEST(ForeignCheck, PassesFilesOfOurOwn) {
  for (const char* name : {"version-2-fast.h5", "version-2-none.h5", "version-2-zstd-3.h5"}) {
    const std::string path = source_folder() + "/tests/golden/" + name;
    EXPECT_NO_THROW(check_foreign_hdf5(testing::read_bytes(path), {})) << name;
  }
}

// The structures are as small as structures can be.
TEST(ForeignCheck, PassesFilesOfNothingButGroups) {
  for (const int per_group : {3, 2000}) {
    Hdf5Tree tree;
    for (int i = 0; i < 2000; ++i) {
      tree.groups.push_back({"g" + std::to_string(i / per_group) + "/" + std::to_string(i), {}});
    }
    EXPECT_NO_THROW(check_foreign_hdf5(compose_hdf5_tree("a.h5", tree), {})) << per_group;
  }
}

// The helper's part of the checks: see foreign_check.h.
TEST(ForeignCheck, LeavesTypesAndChunksToTheHelper) {
  for (const std::string name : {"named_type", "compound", "strings", "opaque", "dimension_scale", "zstd_of_garbage"}) {
    for (const std::string structures : {"_earliest.h5", "_v110.h5", "_dense.h5"}) {
      EXPECT_NO_THROW(check_foreign_hdf5(testing::read_bytes(testing::path_of(name + structures)), {}))
          << name << structures;
    }
  }
}

TEST(ForeignCheck, FindsAFileThatWasCutOff) {
  for (const char* name : {"all_kinds_earliest.h5", "all_kinds_v110.h5"}) {
    std::vector<std::byte> file = testing::read_bytes(testing::path_of(name));
    file.resize(file.size() - 1);

    const testing::Thrown thrown = testing::thrown_by([&] { check_foreign_hdf5(file, {}); });

    EXPECT_THAT(thrown.sentence, HasSubstr("it was cut off"));
  }
}

TEST(ForeignCheck, RefusesSuperblocksThatAreNotRead) {
  constexpr std::size_t kVersion = 8;
  constexpr std::size_t kOffsetBytes = 13;  // in versions 0 and 1
  const std::vector<std::byte> file = testing::read_bytes(testing::path_of("all_kinds_earliest.h5"));
  std::vector<std::byte> newer = file;
  newer[kVersion] = std::byte{4};
  std::vector<std::byte> shorter = file;
  shorter[kOffsetBytes] = std::byte{4};

  EXPECT_THAT(testing::thrown_by([&] { check_foreign_hdf5(newer, {}); }).sentence, HasSubstr("has version 4"));
  EXPECT_THAT(testing::thrown_by([&] { check_foreign_hdf5(shorter, {}); }).sentence, HasSubstr("offsets of 4"));
}

TEST(ForeignCheck, CountsFromTheSuperblock) {
  const std::vector<std::byte> file = testing::read_bytes(testing::path_of("all_kinds_v110.h5"));
  std::vector<std::byte> moved(2048);
  moved.insert(moved.end(), file.begin(), file.end());
  std::vector<std::byte> cut(moved.begin(), moved.end() - 1);

  EXPECT_NO_THROW(check_foreign_hdf5(moved, {}));
  EXPECT_THAT(sentence_about(cut), HasSubstr("it was cut off"));
}

TEST(ForeignCheck, CountsObjects) {
  const std::vector<std::byte> file = testing::read_bytes(testing::path_of("all_kinds_earliest.h5"));

  EXPECT_THAT(sentence_about(file, {.max_objects = 20}), HasSubstr("more than 20 objects"));
}

TEST(ForeignCheck, RefusesStructuresThatFormALoop) {
  constexpr std::size_t kFirstChild = 24 + 8;  // in a tree's node: after its head and its first key
  std::vector<std::byte> file = testing::read_bytes(testing::path_of("all_kinds_earliest.h5"));
  const std::size_t node = find_all(file, "TREE").at(0);

  put(file, node + kFirstChild, node);

  EXPECT_THAT(sentence_about(file), HasSubstr("its structures form a loop"));
}

// Otherwise each of n groups could make the check read all n names, which takes n * n steps.
TEST(ForeignCheck, RefusesStructuresThatOverlap) {
  constexpr std::size_t kNamesBytes = 8;  // in a heap's head
  constexpr std::size_t kNamesAddress = 24;
  std::vector<std::byte> file = testing::read_bytes(testing::path_of("all_kinds_earliest.h5"));
  for (const std::size_t heap : find_all(file, "HEAP")) {
    put(file, heap + kNamesAddress, 0);
    put(file, heap + kNamesBytes, file.size());
  }

  EXPECT_THAT(sentence_about(file), HasSubstr("its structures overlap"));
}

TEST(ForeignCheck, RefusesStructuresThatPointOutside) {
  constexpr std::size_t kFirstChild = 24 + 8;
  const std::vector<std::byte> whole = testing::read_bytes(testing::path_of("all_kinds_earliest.h5"));
  const std::size_t node = find_all(whole, "TREE").at(0);
  for (const std::uint64_t address : {std::uint64_t{whole.size()}, std::uint64_t{whole.size() - 1}, ~std::uint64_t{0},
                                      ~std::uint64_t{7}, std::uint64_t{1} << 63U}) {
    std::vector<std::byte> file = whole;
    put(file, node + kFirstChild, address);

    EXPECT_THAT(sentence_about(file), HasSubstr("its structures point outside the file")) << address;
  }
}

TEST(ForeignCheck, RefusesEmptyStructuresThatPointOutside) {
  constexpr std::size_t kNamesBytes = 8;  // in a heap's head
  constexpr std::size_t kNamesAddress = 24;
  std::vector<std::byte> file = testing::read_bytes(testing::path_of("soft_link_earliest.h5"));
  const std::size_t heap = find_all(file, "HEAP").at(0);

  put(file, heap + kNamesAddress, ~std::uint64_t{0} - 200);
  put(file, heap + kNamesBytes, 0);

  EXPECT_THAT(sentence_about(file), HasSubstr("its structures point outside the file"));
}

TEST(ForeignCheck, ShowsNoNamesThatATerminalObeys) {
  std::vector<std::byte> file = testing::read_bytes(testing::path_of("second_name_earliest.h5"));
  const std::size_t names = find_all(file, std::string_view("a\0\0\0\0\0\0\0b\0", 10)).at(0);

  file[names] = file[names + 8] = std::byte{0x1B};

  EXPECT_THAT(sentence_about(file), HasSubstr("\"?\" is a second name"));
}

TEST(ForeignCheck, EndsForAnyBytes) {
  std::mt19937_64 random(5);
  for (const char* name : {"all_kinds_earliest.h5", "all_kinds_v110.h5", "second_name_dense.h5", "user_block.h5"}) {
    const std::vector<std::byte> whole = testing::read_bytes(testing::path_of(name));
    std::size_t refused = 0;
    for (int round = 0; round < 2000; ++round) {
      const std::vector<std::byte> file = testing::damaged(whole, random);
      try {
        check_foreign_hdf5(file, {});
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ErrorCode::invalid_file) << error.what();
        ++refused;
      }
    }
    EXPECT_GT(refused, 0U) << name;
  }
}

}  // namespace
}  // namespace holdfast::format
