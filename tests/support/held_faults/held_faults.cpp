// Preloaded into a program that takes faults, it holds each process that a fault strikes: once the mark X.fired of the
// fault is on disk, the process waits until X.fired.go is there, too. So a test can hold a run at any step, without a
// sign by which the process could be taken for a stopped one. A process that nobody lets go ends itself.

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>

namespace {

constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 1'000'000};
constexpr time_t kPatience = 300;  // seconds; longer than any wait of a test

time_t seconds_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

std::string path_of(int file) {
  std::array<char, 64> link{};
  std::array<char, 4096> path{};
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", file);
  const ssize_t length = ::readlink(link.data(), path.data(), path.size());
  return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : "";
}

}  // namespace

extern "C" int fsync(int file) {
  const long result = ::syscall(SYS_fsync, file);
  const std::string path = path_of(file);
  if (!path.ends_with(".fired")) return static_cast<int>(result);
  const std::string permission = path + ".go";
  const time_t until = seconds_now() + kPatience;
  while (::access(permission.c_str(), F_OK) != 0) {
    if (seconds_now() > until) {
      std::fprintf(stderr, "held_faults: nobody made %s\n", permission.c_str());
      ::_exit(1);
    }
    ::nanosleep(&kPause, nullptr);
  }
  return static_cast<int>(result);
}
