// An atomic write, with each of its operations failing in turn: the old file stays, and no other file does.

#include "holdfast/base/whole_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <stdexcept>

#include "holdfast/base/error.h"
#include "holdfast/base/temporary_files.h"
#include "support/disks/memory_file_system.h"

namespace holdfast {
namespace {

using ::testing::ElementsAre;

void write(FileSystem& files, const std::string& text) {
  write_whole_file(files, "/run/a.json", std::as_bytes(std::span(text)));
}

class WholeFile : public ::testing::Test {
 protected:
  WholeFile() { memory_.create_folders("/run"); }

  MemoryFileSystem memory_;
};

TEST_F(WholeFile, ReplacesTheOldOne) {
  write(memory_, "old");
  write(memory_, "new");

  EXPECT_EQ(read_text_file(memory_, "/run/a.json"), "new");
  EXPECT_THAT(memory_.list("/run"), ElementsAre("a.json"));
}

TEST_F(WholeFile, MayBeEmpty) {
  write(memory_, "");

  EXPECT_EQ(read_text_file(memory_, "/run/a.json"), "");
}

TEST_F(WholeFile, KeepsTheOldFileAndNoOtherWhicheverOperationFails) {
  for (const std::string operation : {"create", "write", "sync", "rename"}) {
    const auto failing = watched_file_system(memory_, [&](const FileOperation& done) {
      if (done.name == operation) throw system_error(ENOSPC, "cannot write " + done.path);
    });
    write(memory_, "old");

    EXPECT_THROW(write(*failing, "new"), Error) << operation;

    EXPECT_EQ(read_text_file(memory_, "/run/a.json"), "old") << operation;
    EXPECT_THAT(memory_.list("/run"), ElementsAre("a.json")) << operation;
  }
}

TEST_F(WholeFile, KeepsTheOldFileAndNoOtherWhenTheContentCannotBeMade) {
  write(memory_, "old");

  EXPECT_THROW(write_whole_file(memory_, "/run/a.json",
                                [](File& file) {
                                  file.write_at(0, std::as_bytes(std::span("ne")));
                                  throw std::runtime_error("no more");
                                }),
               std::runtime_error);

  EXPECT_EQ(read_text_file(memory_, "/run/a.json"), "old");
  EXPECT_THAT(memory_.list("/run"), ElementsAre("a.json"));
}

TEST_F(WholeFile, LeavesOtherFilesOfTheFolderAlone) {
  memory_.create("/run/a.json.tmp");
  memory_.create("/run/a.json.tmp-0123456789abcdef");

  write(memory_, "new");

  EXPECT_THAT(memory_.list("/run"), ElementsAre("a.json", "a.json.tmp", "a.json.tmp-0123456789abcdef"));
  EXPECT_THAT(remove_temporary_files(memory_, "/run"), ElementsAre("a.json.tmp-0123456789abcdef"));
  EXPECT_THAT(memory_.list("/run"), ElementsAre("a.json", "a.json.tmp"));
}

}  // namespace
}  // namespace holdfast
