// Preloaded into a program that takes faults, it holds each process that a fault strikes: once the mark X.fired of the
// fault is on disk, the process waits until X.fired.go is there, too. So a test can hold a run at any step, without a
// sign by which the process could be taken for a stopped one.

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>

namespace {

constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 1'000'000};

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
  if (path.ends_with(".fired")) {
    while (::access((path + ".go").c_str(), F_OK) != 0) ::nanosleep(&kPause, nullptr);
  }
  return static_cast<int>(result);
}
