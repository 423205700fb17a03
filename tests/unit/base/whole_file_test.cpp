#include "holdfast/base/whole_file.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "holdfast/base/error.h"
#include "support/memory_file_system.h"

namespace holdfast {
namespace {

void write(FileSystem& files, const std::string& text) {
  write_whole_file(files, "/run/a.json", std::as_bytes(std::span(text)));
}

class WholeFile : public ::testing::Test {
 protected:
  WholeFile() { memory_.create_folders("/run"); }

  MemoryFileSystem memory_;
};

}  // namespace

TEST_F(WholeFile, ReplacesTheOldOne) {
  write(memory_, "old");
  write(memory_, "new");

  EXPECT_EQ(read_text_file(memory_, "/run/a.json"), "new");
  EXPECT_EQ(memory_.list("/run"), std::vector<std::string>{"a.json"});
}

TEST_F(WholeFile, StaysAndIsAloneWhicheverOperationFails) {
  for (const std::string operation : {"create", "write", "sync", "rename"}) {
    const auto failing = watched_file_system(memory_, [&](const FileOperation& done) {
      if (done.name == operation) throw system_error(ENOSPC, "cannot write " + done.path);
    });
    write(memory_, "old");

    EXPECT_THROW(write(*failing, "new"), Error) << operation;

    EXPECT_EQ(read_text_file(memory_, "/run/a.json"), "old") << operation;
    EXPECT_EQ(memory_.list("/run"), std::vector<std::string>{"a.json"}) << operation;
  }
}

TEST_F(WholeFile, TakesThePlaceOfOneThatAWriterLeftWhenItDied) {
  memory_.create("/run/a.json.tmp");

  write(memory_, "new");

  EXPECT_EQ(memory_.list("/run"), std::vector<std::string>{"a.json"});
}

}  // namespace holdfast
