// The lock is flock(2) on a file: replicas inherit its descriptor, so the directory stays locked until the last process
// of a run is gone, even when the watchdog was killed. The kernel releases it in every case. docs/decisions/runs.md

#include "holdfast/recovery/run_lock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <filesystem>
#include <fstream>
#include <random>
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
  if (error) throw system_error(error.value(), fmt::format("cannot create the run directory {}", directory));
  const std::string path = directory + "/lock";
  // The file is truncated and written to. Through a link it could be another program's file.
  const FileDescriptor file =
      open_regular_file(path, O_RDWR | O_CREAT | O_NOFOLLOW, fmt::format("take the lock {}", path));
  return duplicate(file.value());
}

// False when another process has the lock.
bool try_lock(int file, const std::string& directory) {
  if (::flock(file, LOCK_EX | LOCK_NB) == 0) return true;
  // The caller tries again until its deadline, so an interrupted call is treated like a lock that is taken.
  if (errno == EWOULDBLOCK || errno == EINTR) return false;
  throw system_error(errno, fmt::format("cannot lock the run directory {}", directory));
}

// False when the earlier owner has put the directory aside (run_start.h) while this process waited for the lock.
bool is_the_lock_of(int file, const std::string& directory) {
  struct stat held {};
  struct stat there {};
  return ::fstat(file, &held) == 0 && ::stat((directory + "/lock").c_str(), &there) == 0 &&
         held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

std::string name_of_this_host() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "-";
}

// What the lock file says of who took the lock last.
struct Owner {
  pid_t pid = 0;
  std::string host{};
  std::string token{};
};

// Nothing where the file names no process.
std::optional<Owner> owner_of(const std::string& directory) {
  Owner owner;
  std::ifstream(directory + "/lock") >> owner.pid >> owner.host >> owner.token;
  return owner.pid > 0 ? std::optional(owner) : std::nullopt;
}

// Processes of another host cannot be asked for.
bool is_here(const Owner& owner) {
  return owner.host.empty() || owner.host == name_of_this_host();
}

bool is_owner_dead(const std::string& directory) {
  const std::optional<Owner> owner = owner_of(directory);
  return owner && is_here(*owner) && ::kill(owner->pid, 0) != 0 && errno == ESRCH;
}

Error taken(const std::string& directory) {
  const std::optional<Owner> last = owner_of(directory);
  const std::string where = last && !is_here(*last) ? fmt::format(" of host {}", last->host) : "";
  const std::string owner = last ? fmt::format("process {}{} or its replicas", last->pid, where) : "another process";
  return Error(ErrorCode::already_running,
               fmt::format("the run directory {} is in use by {}; wait for that run to end, or give another directory",
                           directory, owner));
}

// The next process that wants the lock names the owner in its sentence. The lock holds without this.
void write_owner(int file) {
  const std::string text = fmt::format("{} {} {}\n", ::getpid(), name_of_this_host(), token_of_this_process());
  if (::ftruncate(file, 0) == 0) {
    [[maybe_unused]] const ssize_t written = ::pwrite(file, text.data(), text.size(), 0);
  }
}

}  // namespace

const std::string& token_of_this_process() {
  static const std::string token = [] {
    std::random_device random;
    return fmt::format("{:08x}{:08x}", random(), random());
  }();
  return token;
}

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
  if (held.st_dev != there.st_dev || held.st_ino != there.st_ino) return true;
  // Where locks do not reach across hosts, another owner has the same file, and has written its own name there.
  const std::optional<Owner> last = owner_of(directory);
  return last && !last->token.empty() && last->token != token_of_this_process();
}

std::string owner_token(const std::string& directory) {
  const std::optional<Owner> owner = owner_of(directory);
  return owner ? owner->token : "";
}

}  // namespace holdfast::recovery
