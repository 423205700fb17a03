// Locks within one process: flock(2) locks belong to descriptors, so two of them stand for two owners.

#include "holdfast/recovery/run_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "holdfast/base/error.h"
#include "support/temporary_folder.h"

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(RunLock, CreatesTheDirectoryWithItsParents) {
  const TemporaryFolder directory;
  const std::string path = directory.path() + "/runs/today";

  const FileDescriptor lock = lock_run_directory(path, Deadline::after(0s));

  EXPECT_TRUE(lock.is_open());
  EXPECT_TRUE(std::filesystem::is_directory(path));
}

TEST(RunLock, NamesDirectoryAndOwnerWhenItIsTaken) {
  const TemporaryFolder directory;
  const FileDescriptor lock = lock_run_directory(directory.path(), Deadline::after(0s));

  try {
    lock_run_directory(directory.path(), Deadline::after(0s));
    FAIL() << "locked twice";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::already_running);
    EXPECT_THAT(error.what(), HasSubstr(directory.path()));
    EXPECT_THAT(error.what(), HasSubstr(std::to_string(::getpid())));
  }
}

TEST(RunLock, HoldsUntilTheLastCopyOfItsDescriptorIsClosed) {
  const TemporaryFolder directory;
  FileDescriptor lock = lock_run_directory(directory.path(), Deadline::after(0s));
  FileDescriptor copy(::dup(lock.value()));
  lock.reset();
  EXPECT_THROW(lock_run_directory(directory.path(), Deadline::after(0s)), Error);

  copy.reset();

  EXPECT_TRUE(lock_run_directory(directory.path(), Deadline::after(0s)).is_open());
}

// The target of the link was truncated, and a number was written into it.
TEST(RunLock, FollowsNoLink) {
  const TemporaryFolder directory;
  std::ofstream(directory / "victim") << "content";
  std::filesystem::create_symlink("victim", directory / "lock");

  try {
    lock_run_directory(directory.path(), Deadline::after(0s));
    FAIL() << "locked";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(directory / "lock"));
    EXPECT_THAT(error.what(), HasSubstr("a symbolic link"));
  }
  EXPECT_EQ(std::filesystem::file_size(directory / "victim"), 7U);
}

TEST(RunLock, IsAFile) {
  const TemporaryFolder directory;
  ASSERT_EQ(::mkfifo((directory / "lock").c_str(), 0600), 0);

  EXPECT_THROW(lock_run_directory(directory.path(), Deadline::after(0s)), Error);
}

TEST(RunLock, DetectsThatAnotherOwnerHasTakenOver) {
  const TemporaryFolder folder;
  const std::string directory = folder / "run";
  const FileDescriptor lock = lock_run_directory(directory, Deadline::after(0s));
  EXPECT_FALSE(is_directory_taken_over(lock, directory));

  std::filesystem::remove_all(directory);
  EXPECT_FALSE(is_directory_taken_over(lock, directory));
  const FileDescriptor other = lock_run_directory(directory, Deadline::after(0s));

  EXPECT_TRUE(is_directory_taken_over(lock, directory));
  EXPECT_FALSE(is_directory_taken_over(other, directory));
}

TEST(RunLock, NamesADirectoryThatCannotBeCreated) {
  try {
    lock_run_directory("/dev/null/run", Deadline::after(0s));
    FAIL() << "locked";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("/dev/null/run"));
  }
}

}  // namespace
}  // namespace holdfast::recovery
