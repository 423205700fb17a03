// A write is atomic whichever operation of the file system fails.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "holdfast/base/temporary_files.h"
#include "holdfast/format/array_file.h"
#include "unit/format/support/array_files.h"

namespace holdfast::format {
namespace {

using testing::Array;
using testing::make_array;
using ::testing::MatchesRegex;
using testing::read_bytes;
using testing::small_arrays;
using ::testing::StartsWith;
using testing::thrown_by;
using testing::write_arrays;

class Writer : public ::testing::Test {
 protected:
  Writer() {
    write_arrays(path_, small_arrays(), R"({"step": 1})");
    old_bytes_ = read_bytes(path_);
  }

  // Large enough for several pieces.
  static std::vector<Array> new_arrays() { return {make_array("large", DType::f32, {600, 1000})}; }

  // Writes with a file system in which `before` can make operations fail.
  void overwrite(std::function<void(const FileOperation&)> before) const {
    const auto files = watched_file_system(posix_file_system(), std::move(before));
    const std::vector<Array> arrays = new_arrays();
    // One thread: the order of operations is compared.
    write_array_file(*files, path_, "{}", views(arrays), {.threads = 1});
  }

  void expect_old_file_alone() const {
    EXPECT_EQ(folder_.names(), std::vector<std::string>{"a.h5"});
    EXPECT_TRUE(read_bytes(path_) == old_bytes_);
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "a.h5";
  std::vector<std::byte> old_bytes_;
};

TEST_F(Writer, SyncsBeforeItRenamesAndTheFolderAfterwards) {
  std::vector<std::string> names;
  std::string temporary;
  std::string synced_folder;

  overwrite([&](const FileOperation& operation) {
    if (operation.name != "write_back" && (names.empty() || names.back() != operation.name)) {
      names.push_back(operation.name);
    }
    if (operation.name == "rename") temporary = operation.path;
    if (operation.name == "sync_folder") synced_folder = operation.path;
  });

  EXPECT_EQ(names, (std::vector<std::string>{"create", "write", "sync", "rename", "sync_folder"}));
  EXPECT_EQ(synced_folder, folder_.path());
  EXPECT_THAT(temporary, StartsWith(path_ + ".tmp-"));
  EXPECT_THAT(temporary.substr(path_.size()), MatchesRegex("\\.tmp-[0-9a-f]+"));
  EXPECT_EQ(temporary.size(), path_.size() + 5 + 16);
  EXPECT_EQ(folder_.names(), std::vector<std::string>{"a.h5"});
}

TEST_F(Writer, WritesTheHeaderLast) {
  std::vector<std::uint64_t> offsets;

  overwrite([&](const FileOperation& operation) {
    if (operation.name == "write") offsets.push_back(operation.offset);
  });

  ASSERT_GT(offsets.size(), 4U);
  EXPECT_EQ(offsets.back(), 0U);
  EXPECT_EQ(std::count(offsets.begin(), offsets.end(), 0U), 1);
}

TEST_F(Writer, KeepsTheOldFileWhicheverOperationFindsTheDiskFull) {
  std::size_t operations = 0;
  overwrite([&](const FileOperation&) { ++operations; });
  const std::vector<std::byte> new_bytes = read_bytes(path_);
  ASSERT_GT(operations, 10U);

  for (std::size_t failing = 0; failing < operations; ++failing) {
    write_arrays(path_, small_arrays(), R"({"step": 1})");
    std::size_t index = 0;
    std::string failed;
    const auto thrown = thrown_by([&] {
      overwrite([&](const FileOperation& operation) {
        if (index++ != failing) return;
        failed = operation.name;
        throw system_error(ENOSPC, "cannot " + operation.name + " " + operation.path);
      });
    });

    EXPECT_EQ(thrown.code, ErrorCode::disk_full) << failed;
    EXPECT_EQ(folder_.names(), std::vector<std::string>{"a.h5"}) << failed;
    // Only when the fsync of the folder fails has the file been replaced, by a whole one.
    EXPECT_TRUE(read_bytes(path_) == (failed == "sync_folder" ? new_bytes : old_bytes_)) << failed;
  }
}

TEST_F(Writer, ReportsTheFirstErrorWhenCleaningUpFailsToo) {
  const auto thrown = thrown_by([&] {
    overwrite([&](const FileOperation& operation) {
      if (operation.name == "sync") throw system_error(EIO, "the disk is gone");
      if (operation.name == "remove") throw system_error(EROFS, "the disk is read-only");
    });
  });

  EXPECT_EQ(thrown.code, ErrorCode::input_output);
  EXPECT_THAT(thrown.sentence, StartsWith("the disk is gone"));
  EXPECT_EQ(folder_.names().size(), 2U);
  EXPECT_TRUE(read_bytes(path_) == old_bytes_);
  EXPECT_EQ(remove_temporary_files(posix_file_system(), folder_.path()).size(), 1U);
  expect_old_file_alone();
}

TEST_F(Writer, CleansUpWhenAnythingElseIsThrown) {
  EXPECT_EQ(thrown_by([&] {
              overwrite([&](const FileOperation& operation) {
                if (operation.name == "write" && operation.offset > 4096) throw std::bad_alloc();
              });
            }).code,
            ErrorCode::out_of_memory);

  expect_old_file_alone();
}

TEST_F(Writer, LeavesNoFileIfThereWasNone) {
  posix_file_system().remove(path_);

  EXPECT_EQ(thrown_by([&] {
              overwrite([](const FileOperation& operation) {
                if (operation.name == "rename") throw system_error(EIO, "cannot rename");
              });
            }).code,
            ErrorCode::input_output);

  EXPECT_TRUE(folder_.names().empty());
}

TEST_F(Writer, NamesTheFolderThatIsMissing) {
  const auto thrown = thrown_by([&] { write_arrays(folder_ / "none/a.h5", small_arrays()); });

  EXPECT_EQ(thrown.code, ErrorCode::not_found);
  EXPECT_THAT(thrown.sentence, ::testing::HasSubstr("none/a.h5"));
}

TEST(Reader, PassesOnTheErrorsOfTheDisk) {
  TemporaryFolder folder;
  write_arrays(folder / "a.h5", {make_array("large", DType::f32, {600, 1000})});
  const auto load = [](FileSystem& files, const std::string& path) {
    static_cast<void>(ArrayFile::open(files, path, {.threads = 1}).read("large"));
  };
  std::size_t reads = 0;
  load(*watched_file_system(posix_file_system(), [&](const FileOperation& o) { reads += o.name == "read"; }),
       folder / "a.h5");
  ASSERT_GT(reads, 4U);  // header, index, metadata, chunks

  for (std::size_t failing = 0; failing < reads; ++failing) {
    std::size_t index = 0;
    const auto files = watched_file_system(posix_file_system(), [&](const FileOperation& operation) {
      if (operation.name == "read" && index++ == failing) throw system_error(EIO, "cannot read");
    });

    EXPECT_EQ(thrown_by([&] { load(*files, folder / "a.h5"); }).code, ErrorCode::input_output) << failing;
  }
}

}  // namespace
}  // namespace holdfast::format
