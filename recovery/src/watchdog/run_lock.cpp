// The lock is flock(2) on a file: replicas inherit its descriptor, so the directory stays locked until the last process
// of a run is gone, even when the watchdog was killed. The kernel releases it in every case. docs/decisions/runs.md

#include "holdfast/recovery/run_lock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "channel/descriptors.h"
#include "holdfast/base/error.h"
#include "holdfast/base/regular_file.h"

namespace holdfast::recovery {
namespace {

constexpr std::chrono::milliseconds kLockRetryPeriod(20);

FileDescriptor open_lock_file(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw system_error(error.value(), "cannot create the run directory " + directory);
  const std::string path = directory + "/lock";
  // The file is truncated and written to. Through a link it could be another program's file.
  const FileDescriptor file = open_regular_file(path, O_RDWR | O_CREAT | O_NOFOLLOW, "take the lock " + path);
  return duplicate(file.value());
}

// False when another process has the lock.
bool try_lock(int file, const std::string& directory) {
  if (::flock(file, LOCK_EX | LOCK_NB) == 0) return true;
  // The caller tries again until its deadline, so an interrupted call is treated like a lock that is taken.
  if (errno == EWOULDBLOCK || errno == EINTR) return false;
  throw system_error(errno, "cannot lock the run directory " + directory);
}

// False when the earlier owner has put the directory aside (run_start.h) while this process waited for the lock.
bool is_the_lock_of(int file, const std::string& directory) {
  struct stat held {};
  struct stat there {};
  return ::fstat(file, &held) == 0 && ::stat((directory + "/lock").c_str(), &there) == 0 &&
         held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

// Nothing where the file names no process.
std::optional<pid_t> owner_of(const std::string& directory) {
  pid_t pid = 0;
  std::ifstream(directory + "/lock") >> pid;
  return pid > 0 ? std::optional(pid) : std::nullopt;
}

bool is_owner_dead(const std::string& directory) {
  const std::optional<pid_t> owner = owner_of(directory);
  return owner && ::kill(*owner, 0) != 0 && errno == ESRCH;
}

Error taken(const std::string& directory) {
  const std::optional<pid_t> pid = owner_of(directory);
  const std::string owner = pid ? fmt::format("process {} or its replicas", *pid) : "another process";
  return Error(ErrorCode::already_running,
               fmt::format("the run directory {} is in use by {}; wait for that run to end, or give another directory",
                           directory, owner));
}

// The next process that wants the lock names the owner in its sentence. The lock holds without this.
void write_owner(int file) {
  const std::string text = fmt::format("{}\n", ::getpid());
  if (::ftruncate(file, 0) == 0) {
    [[maybe_unused]] const ssize_t written = ::pwrite(file, text.data(), text.size(), 0);
  }
}

}  // namespace

FileDescriptor lock_run_directory(const std::string& directory, Deadline deadline,
                                  std::optional<Deadline> of_a_dead_owner) {
  FileDescriptor file = open_lock_file(directory);
  // flock(2) knows no deadline.
  for (;;) {
    // A lock on a file that is no longer DIRECTORY/lock is of no use, so the file is opened again.
    const bool is_locked = try_lock(file.value(), directory);
    if (is_locked && is_the_lock_of(file.value(), directory)) break;
    if (deadline.has_passed()) {
      const bool are_replicas_dying = of_a_dead_owner && !of_a_dead_owner->has_passed() && is_owner_dead(directory);
      if (!are_replicas_dying) throw taken(directory);
    }
    if (is_locked) {
      file = open_lock_file(directory);
    } else {
      std::this_thread::sleep_for(kLockRetryPeriod);
    }
  }
  write_owner(file.value());
  return file;
}

bool is_directory_taken_over(const FileDescriptor& lock, const std::string& directory) {
  struct stat held {};
  struct stat there {};
  // A file that is missing was removed, but no other run has begun: its own lock would be there.
  if (::fstat(lock.value(), &held) != 0 || ::lstat((directory + "/lock").c_str(), &there) != 0) return false;
  return held.st_dev != there.st_dev || held.st_ino != there.st_ino;
}

}  // namespace holdfast::recovery
