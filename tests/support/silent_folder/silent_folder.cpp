// Preloaded into a program, it makes write(2) to any journal.jsonl wait while the file that SILENT_WHILE names exists.
// So does a shared folder whose server does not answer.

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 10'000'000};

bool is_journal(int file) {
  std::array<char, 64> link{};
  std::array<char, 4096> path{};
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", file);
  const ssize_t length = ::readlink(link.data(), path.data(), path.size());
  return length > 0 && std::string_view(path.data(), static_cast<std::size_t>(length)).ends_with("/journal.jsonl");
}

}  // namespace

extern "C" ssize_t write(int file, const void* bytes, std::size_t count) {
  const char* const mark = std::getenv("SILENT_WHILE");
  if (mark != nullptr && is_journal(file)) {
    while (::access(mark, F_OK) == 0) ::nanosleep(&kPause, nullptr);
  }
  return ::syscall(SYS_write, file, bytes, count);
}
