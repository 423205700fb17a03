// Locks within one process: flock(2) locks belong to descriptors, so two of them stand for two owners.

#include "holdfast/recovery/run_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "holdfast/base/error.h"
#include "support/comes_true.h"
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

// A process that has ended and was waited for.
pid_t dead_process() {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  ::waitpid(pid, nullptr, 0);
  return pid;
}

int descriptors_of(const std::string& path) {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code closed_meanwhile;
    found += std::filesystem::read_symlink(entry.path(), closed_meanwhile) == path;
  }
  return found;
}

TEST(RunLock, GivesReplicasOfADeadOwnerTimeToDie) {
  const TemporaryFolder directory;
  FileDescriptor of_replica = lock_run_directory(directory.path(), Deadline::after(0s));
  std::ofstream(directory / "lock") << dead_process() << '\n';
  EXPECT_THROW(lock_run_directory(directory.path(), Deadline::after(0s)), Error);
  EXPECT_THROW(lock_run_directory(directory.path(), Deadline::after(0s), Deadline::after(0s)), Error);

  std::thread replica([&] {
    EXPECT_TRUE(comes_true([&] { return descriptors_of(directory / "lock") == 2; }));
    of_replica.reset();
  });
  EXPECT_NO_THROW(lock_run_directory(directory.path(), Deadline::after(0s), Deadline::after(kPatience)));
  replica.join();
}

TEST(RunLock, GivesALivingOwnerNoMoreTime) {
  const TemporaryFolder directory;
  const FileDescriptor lock = lock_run_directory(directory.path(), Deadline::after(0s));

  EXPECT_THROW(lock_run_directory(directory.path(), Deadline::after(0s), Deadline::after(kPatience)), Error);
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

// File locks of two hosts may know nothing of each other, as on some network file systems.
TEST(RunLock, DetectsAnOwnerOfAnotherHostByWhatItHasWritten) {
  const TemporaryFolder directory;
  const FileDescriptor lock = lock_run_directory(directory.path(), Deadline::after(0s));
  const std::string own = owner_token(directory.path());

  std::ofstream(directory / "lock") << "12345 elsewhere 0123456789abcdef\n";

  EXPECT_TRUE(is_directory_taken_over(lock, directory.path()));
  EXPECT_EQ(owner_token(directory.path()), "0123456789abcdef");
  EXPECT_FALSE(own.empty());
  try {
    lock_run_directory(directory.path(), Deadline::after(0s), Deadline::after(1h));
    ADD_FAILURE() << "the lock was taken twice";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("in use by process 12345 of host elsewhere or its replicas"));
  }
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
