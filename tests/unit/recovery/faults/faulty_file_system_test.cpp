// Savepoints are written through the file system as the writer does it, to files in memory.

#include "holdfast/recovery/faulty_file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "holdfast/base/error.h"
#include "support/disks/memory_file_system.h"
#include "support/temporary_folder.h"

namespace holdfast::recovery {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::array kContent{std::byte{1}, std::byte{2}};

std::string name_of(int step) {
  std::array<char, 40> name{};
  std::snprintf(name.data(), name.size(), "/run/savepoint-%010d.h5", step);
  return name.data();
}

// A run whose savepoints are files in memory, with one fault of rank 0.
class FaultyFileSystem : public ::testing::Test {
 protected:
  void meet(const std::string& fault) {
    faults_ = Faults({parse_fault("rank=0,step=12," + fault, 1)}, {.run_directory = directory_.path()});
  }

  // Writes a savepoint and then deletes an older one.
  void save(int step) {
    const std::string temporary = name_of(step) + ".tmp-1";
    const std::unique_ptr<File> file = files_->create(temporary);
    file->write_at(0, kContent);
    file->sync();
    files_->rename(temporary, name_of(step));
    files_->sync_folder("/run");
    if (!files_->exists(name_of(step - 1))) return;
    files_->remove(name_of(step - 1));
    files_->sync_folder("/run");
  }

  std::vector<std::string> paths() const {
    std::vector<std::string> paths;
    for (const auto& [path, content] : memory_.contents()) paths.push_back(path);
    return paths;
  }

  std::string failure_of(int step) {
    try {
      save(step);
    } catch (const std::exception& failure) {
      return failure.what();
    }
    return "";
  }

  TemporaryFolder directory_;
  MemoryFileSystem memory_{{{name_of(11), {}}}};
  Faults faults_{{}, {}};
  std::unique_ptr<FileSystem> files_ = faulty_file_system(memory_, faults_);
};

TEST_F(FaultyFileSystem, ChangesNothingWithoutAFault) {
  save(12);

  EXPECT_THAT(paths(), ElementsAre(name_of(12)));
}

TEST_F(FaultyFileSystem, StrikesBeforeTheFirstByteInPhaseWriting) {
  meet("fault=throw,phase=writing");

  EXPECT_THAT(failure_of(12), HasSubstr("injected"));

  EXPECT_THAT(paths(), ElementsAre(name_of(11)));
}

TEST_F(FaultyFileSystem, StrikesBeforeRenameWhenAllBytesAreWritten) {
  meet("fault=throw,phase=before-rename");

  EXPECT_THAT(failure_of(12), HasSubstr("injected"));

  EXPECT_THAT(paths(), ElementsAre(name_of(11), name_of(12) + ".tmp-1"));
  EXPECT_EQ(memory_.contents().at(name_of(12) + ".tmp-1").size(), kContent.size());
}

TEST_F(FaultyFileSystem, StrikesAfterRenameWhenTheSavepointHasItsName) {
  meet("fault=throw,phase=after-rename");

  EXPECT_THAT(failure_of(12), HasSubstr("injected"));

  EXPECT_THAT(paths(), ElementsAre(name_of(11), name_of(12)));
}

TEST_F(FaultyFileSystem, StrikesInPhasePruningBeforeAnOlderSavepointIsDeleted) {
  meet("fault=throw,phase=pruning");

  EXPECT_THAT(failure_of(12), HasSubstr("injected"));

  EXPECT_THAT(paths(), ElementsAre(name_of(11), name_of(12)));
}

TEST_F(FaultyFileSystem, WaitsForTheSavepointOfTheStepThatTheFaultNames) {
  meet("fault=throw,phase=writing");

  EXPECT_EQ(failure_of(11 + 2), "");
  EXPECT_NE(failure_of(12), "");
}

TEST_F(FaultyFileSystem, ReportsWhatAFullDiskCannotDo) {
  meet("fault=full-disk,count=1");

  try {
    save(12);
    FAIL() << "saved";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::disk_full);
    EXPECT_THAT(error.what(), HasSubstr("cannot create " + name_of(12) + ".tmp-1: No space left on device"));
  }
  EXPECT_EQ(failure_of(13), "");
}

TEST_F(FaultyFileSystem, StillReadsAndDeletesWhenTheDiskIsFull) {
  meet("fault=full-disk");
  EXPECT_NE(failure_of(12), "");

  EXPECT_NO_THROW(files_->open_for_reading(name_of(11)));
  EXPECT_NO_THROW(files_->remove(name_of(11)));

  EXPECT_NE(failure_of(13), "");
}

TEST_F(FaultyFileSystem, ReadsNothingFromAFailingDisk) {
  meet("fault=io-error");
  EXPECT_THAT(failure_of(12), HasSubstr("Input/output error"));

  EXPECT_THROW(files_->open_for_reading(name_of(11)), Error);
}

TEST_F(FaultyFileSystem, LeavesOtherFilesAlone) {
  meet("fault=io-error");
  EXPECT_NE(failure_of(12), "");

  EXPECT_NO_THROW(files_->create("/run/run.json")->write_at(0, kContent));
  EXPECT_NO_THROW(files_->sync_folder("/run"));
}

}  // namespace
}  // namespace holdfast::recovery
