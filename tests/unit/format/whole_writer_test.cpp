#include "whole_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "unit/format/support/array_files.h"

namespace holdfast::format {
namespace {

using testing::read_bytes;
using testing::thrown_by;
using testing::write_bytes;

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

void write_new(FileSystem& files, const std::string& path) {
  WholeWriter writer(files, path);
  writer.append(bytes_of("....tail"));
  writer.append({});
  writer.write_at(0, bytes_of("head"));
  writer.append(bytes_of("!"));
  writer.commit();
}

TEST(WholeWriter, AppendsAndGoesBack) {
  TemporaryFolder folder;

  write_new(posix_file_system(), folder / "a");

  EXPECT_EQ(read_bytes(folder / "a"), bytes_of("headtail!"));
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a"});
}

TEST(WholeWriter, LeavesTheOldFileWithoutCommit) {
  TemporaryFolder folder;
  write_bytes(folder / "a", bytes_of("old"));

  {
    WholeWriter writer(posix_file_system(), folder / "a");
    writer.append(bytes_of("new"));
    EXPECT_EQ(folder.names().size(), 2U);
  }

  EXPECT_EQ(folder.names(), std::vector<std::string>{"a"});
  EXPECT_EQ(read_bytes(folder / "a"), bytes_of("old"));
}

TEST(WholeWriter, KeepsTheOldFileWhicheverOperationFails) {
  TemporaryFolder folder;
  std::vector<std::string> names;
  const auto counting = watched_file_system(posix_file_system(),
                                            [&](const FileOperation& operation) { names.push_back(operation.name); });
  write_new(*counting, folder / "a");
  ASSERT_EQ(names, (std::vector<std::string>{"create", "write", "write", "write", "sync", "rename", "sync_folder"}));

  for (std::size_t failing = 0; failing < names.size(); ++failing) {
    write_bytes(folder / "a", bytes_of("old"));
    std::size_t index = 0;
    const auto files = watched_file_system(posix_file_system(), [&](const FileOperation& operation) {
      if (index++ == failing) throw system_error(ENOSPC, "cannot " + operation.name);
    });

    EXPECT_EQ(thrown_by([&] { write_new(*files, folder / "a"); }).code, ErrorCode::disk_full) << names[failing];
    EXPECT_EQ(folder.names(), std::vector<std::string>{"a"}) << names[failing];
    // Only when the folder's fsync fails has the file been replaced: by a whole one.
    EXPECT_EQ(read_bytes(folder / "a"), bytes_of(names[failing] == "sync_folder" ? "headtail!" : "old"));
  }
}

TEST(WholeWriter, ReportsTheFirstErrorWhenCleaningUpFailsToo) {
  TemporaryFolder folder;
  const auto files = watched_file_system(posix_file_system(), [&](const FileOperation& operation) {
    if (operation.name == "sync") throw system_error(EIO, "the disk is gone");
    if (operation.name == "remove") throw system_error(EROFS, "the disk is read-only");
  });

  const auto thrown = thrown_by([&] { write_new(*files, folder / "a"); });

  EXPECT_THAT(thrown.sentence, ::testing::StartsWith("the disk is gone"));
  EXPECT_FALSE(posix_file_system().exists(folder / "a"));
  EXPECT_EQ(folder.names().size(), 1U);
}

}  // namespace
}  // namespace holdfast::format
