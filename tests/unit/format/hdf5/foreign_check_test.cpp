#include "hdf5/foreign_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "unit/format/hdf5/support/trees.h"

namespace holdfast::format {
namespace {

using ::testing::HasSubstr;

// What the check before HDF5 is for: these never get as far as HDF5.
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
