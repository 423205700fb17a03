// What a host that is cut off can still do to files: nothing that another host would see under a name.

#include "train/supervise/fenced_file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "holdfast/base/error.h"
#include "holdfast/base/whole_file.h"
#include "holdfast/base/whole_writer.h"
#include "holdfast/format/array_file.h"
#include "holdfast/format/savepoint_keeper.h"
#include "support/disks/memory_file_system.h"
#include "support/text_bytes.h"
#include "support/thrown.h"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FencedFiles : public ::testing::Test {
 protected:
  FencedFiles() {
    auto memory = std::make_unique<MemoryFileSystem>();
    memory_ = memory.get();
    memory_->create_folders("/run");
    files_ = fenced_file_system(std::move(memory), [this] { return may_change_; });
  }

  void write_savepoint(std::int64_t step) {
    format::write_array_file(*files_, "/run/" + format::savepoint_name(step), R"({"step": 1})", {});
  }

  bool may_change_ = true;
  MemoryFileSystem* memory_ = nullptr;  // owned by files_
  std::unique_ptr<FileSystem> files_;
};

TEST_F(FencedFiles, AreAsOthersWhileTheHostMayChangeThem) {
  write_whole_file(*files_, "/run/a", bytes_of("old"));
  files_->rename("/run/a", "/run/b");
  EXPECT_THAT(memory_->list("/run"), ElementsAre("b"));

  files_->remove("/run/b");

  EXPECT_TRUE(memory_->list("/run").empty());
}

TEST_F(FencedFiles, KeepWhatWasThereWhenAWriteEndsTooLate) {
  write_whole_file(*files_, "/run/a", bytes_of("old"));
  WholeWriter writer(*files_, "/run/a");
  writer.append(bytes_of("new"));

  may_change_ = false;
  const auto commit = [&] { writer.commit(); };

  EXPECT_THAT(commit, testing::ThrowsMessage<Error>(HasSubstr("this host has lost the run's head")));
  EXPECT_EQ(read_text_file(*memory_, "/run/a"), "old");
}

// What a failing storage does, too: the replica then goes on without the savepoint.
TEST_F(FencedFiles, FailAsAStorageDoes) {
  write_whole_file(*files_, "/run/a", bytes_of("old"));
  may_change_ = false;

  for (const auto& change : {+[](FileSystem& files) { files.rename("/run/a", "/run/b"); },
                             +[](FileSystem& files) { files.remove("/run/a"); }}) {
    try {
      change(*files_);
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::input_output);
      EXPECT_THAT(error.what(), HasSubstr("/run/a"));
    }
  }
  EXPECT_THAT(memory_->list("/run"), ElementsAre("a"));
}

TEST_F(FencedFiles, KeepSavepointsThatTheRetentionWouldDelete) {
  for (const std::int64_t step : {1, 2, 3}) write_savepoint(step);
  format::SavepointKeeper keeper(*files_, "/run", {.retention = {.keep_last = 1}});

  may_change_ = false;
  EXPECT_THROW(keeper.prune(), Error);
  EXPECT_EQ(memory_->list("/run").size(), 3U);
  may_change_ = true;
  keeper.prune();

  EXPECT_THAT(memory_->list("/run"), ElementsAre(format::savepoint_name(3)));
}

}  // namespace
}  // namespace holdfast
