// The same promise as in whole_file_test.cpp, for writes in several calls.

#include "holdfast/base/whole_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "holdfast/base/error.h"
#include "holdfast/base/temporary_files.h"
#include "holdfast/base/whole_file.h"
#include "support/disks/memory_file_system.h"
#include "support/text_bytes.h"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::Property;
using ::testing::StartsWith;
using ::testing::Throws;
using ::testing::ThrowsMessage;

// Writes the content "headtail!".
void write_new(FileSystem& files) {
  WholeWriter writer(files, "/run/a");
  writer.append(bytes_of("....tail"));
  writer.append({});
  writer.write_at(0, bytes_of("head"));
  writer.append(bytes_of("!"));
  writer.commit();
}

class WholeWriterTest : public ::testing::Test {
 protected:
  WholeWriterTest() { memory_.create_folders("/run"); }

  void write_old() { write_whole_file(memory_, "/run/a", bytes_of("old")); }
  std::string content() { return read_text_file(memory_, "/run/a"); }

  MemoryFileSystem memory_;
};

TEST_F(WholeWriterTest, AppendsAndWritesAtEarlierOffsets) {
  write_new(memory_);

  EXPECT_EQ(content(), "headtail!");
  EXPECT_THAT(memory_.list("/run"), ElementsAre("a"));
}

TEST_F(WholeWriterTest, LeavesTheOldFileWithoutCommit) {
  write_old();

  {
    WholeWriter writer(memory_, "/run/a");
    writer.append(bytes_of("new"));
    EXPECT_EQ(memory_.list("/run").size(), 2U);
  }

  EXPECT_THAT(memory_.list("/run"), ElementsAre("a"));
  EXPECT_EQ(content(), "old");
}

TEST_F(WholeWriterTest, KeepsTheOldFileWhicheverOperationFails) {
  std::vector<std::string> names;
  const auto counting =
      watched_file_system(memory_, [&](const FileOperation& operation) { names.push_back(operation.name); });
  write_new(*counting);
  ASSERT_THAT(names, ElementsAre("create", "write", "write", "write", "sync", "rename", "sync_folder"));

  for (std::size_t failing = 0; failing < names.size(); ++failing) {
    write_old();
    std::size_t index = 0;
    const auto files = watched_file_system(memory_, [&](const FileOperation& operation) {
      if (index++ == failing) throw system_error(ENOSPC, "cannot " + operation.name);
    });

    EXPECT_THAT([&] { write_new(*files); }, Throws<Error>(Property(&Error::code, ErrorCode::disk_full)))
        << names[failing];

    EXPECT_THAT(memory_.list("/run"), ElementsAre("a")) << names[failing];
    // Only when the fsync of the folder fails has the file been replaced, by a whole one.
    EXPECT_EQ(content(), names[failing] == "sync_folder" ? "headtail!" : "old");
  }
}

TEST_F(WholeWriterTest, ReportsTheFirstErrorWhenCleaningUpFailsToo) {
  const auto files = watched_file_system(memory_, [&](const FileOperation& operation) {
    if (operation.name == "sync") throw system_error(EIO, "the disk is gone");
    if (operation.name == "remove") throw system_error(EROFS, "the disk is read-only");
  });

  EXPECT_THAT([&] { write_new(*files); }, ThrowsMessage<Error>(StartsWith("the disk is gone")));

  const std::vector<std::string> left = memory_.list("/run");
  EXPECT_EQ(left.size(), 1U);
  EXPECT_EQ(remove_temporary_files(memory_, "/run"), left);
}

TEST_F(WholeWriterTest, DoesNotCollideWithAnotherWriterOfThePath) {
  WholeWriter first(memory_, "/run/a");
  WholeWriter second(memory_, "/run/a");
  second.append(bytes_of("second"));
  first.append(bytes_of("first"));

  second.commit();
  EXPECT_EQ(content(), "second");
  first.commit();

  EXPECT_EQ(content(), "first");
  EXPECT_THAT(memory_.list("/run"), ElementsAre("a"));
}

}  // namespace
}  // namespace holdfast
