// Only a process can have its address space limited, and only a process may fail for want of memory without harm. The
// child is forked, so the program need not be started again up to this point. It computes on a thread of its own: the
// pool of OpenMP's threads that the caller may have is not copied. docs/decisions/batch-size.md

#include "train/fit/limited_trial.h"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <new>
#include <string>
#include <system_error>
#include <thread>

#include "holdfast/base/deadline.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

constexpr int kExitFits = 0;
constexpr int kExitTooLarge = 3;
constexpr int kExitError = 4;
constexpr std::size_t kMostTrialText = 4000;

// A line of /proc/self/status in bytes: "VmSize" or "VmPeak".
std::uint64_t status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":")) return std::strtoull(line.c_str() + name.size() + 1, nullptr, 10) * 1024;
  }
  return 0;
}

void write_all(int pipe, const std::string& text) {
  std::size_t bytes = std::min(text.size(), kMostTrialText);
  // Between two characters: half of one is not UTF-8. Three bytes at most follow the first one of a character.
  for (int i = 0; i < 3 && bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80; ++i) {
    --bytes;
  }
  // Fits into a pipe, so one call writes it, and a parent that reads late does not hold the child.
  [[maybe_unused]] const ssize_t written = ::write(pipe, text.data(), bytes);
}

int work_within(std::uint64_t bytes, int pipe, const std::function<void()>& work) {
  // Each arena of the allocator reserves more address space than it uses.
  ::mallopt(M_ARENA_MAX, 1);
  const std::uint64_t before = status_bytes("VmSize");
  const rlim_t most = before + bytes;
  const rlimit limit{.rlim_cur = most, .rlim_max = most};
  if (before == 0 || ::setrlimit(RLIMIT_AS, &limit) != 0) {
    write_all(pipe, fmt::format("{}the address space of a process cannot be limited here",
                                static_cast<char>(ErrorCode::unavailable)));
    return kExitError;
  }
  try {
    work();
    write_all(pipe, std::to_string(status_bytes("VmPeak") - before));
    return kExitFits;
  } catch (const std::bad_alloc&) {
    return kExitTooLarge;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::out_of_memory) return kExitTooLarge;
    write_all(pipe, static_cast<char>(error.code()) + std::string(error.what()));
    return kExitError;
  } catch (const std::system_error& error) {
    // A thread without room for its stack. Errors of files are of this type, too.
    if (error.code() == std::errc::resource_unavailable_try_again || error.code() == std::errc::not_enough_memory)
      return kExitTooLarge;
    write_all(pipe, static_cast<char>(ErrorCode::input_output) + std::string(error.what()));
    return kExitError;
  } catch (const std::exception& error) {
    write_all(pipe, static_cast<char>(ErrorCode::invalid_argument) + std::string(error.what()));
    return kExitError;
  }
}

[[noreturn]] void be_the_child(std::uint64_t bytes, int pipe, pid_t parent, const std::function<void()>& work) {
  // The signal is set after the fork, so a parent may have died before it. Then the child has another parent already.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kExitError);
  // A crash for want of memory is an answer here, and leaves no file.
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  ::setrlimit(RLIMIT_CORE, &none);
  // Handlers that the parent has set speak for the parent: a crash of the child is not one of it.
  for (const int signal : {SIGSEGV, SIGABRT, SIGBUS}) ::signal(signal, SIG_DFL);
  // A run may be stopped by a signal to all of its processes. An end by it would read as a batch that is too large.
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) ::signal(signal, SIG_IGN);
  int code = kExitTooLarge;
  try {
    std::thread([&] { code = work_within(bytes, pipe, work); }).join();
  } catch (...) {
    code = kExitTooLarge;
  }
  // Leaves without destructors and without flushing what the parent has not written yet.
  ::_exit(code);
}

class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) throw system_error(errno, "cannot make a pipe to a trial process");
  }
  ~Pipe() {
    ::close(ends_[0]);
    if (ends_[1] >= 0) ::close(ends_[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int writing_end() const { return ends_[1]; }
  // So that reading ends with the child.
  void close_writing_end() {
    ::close(ends_[1]);
    ends_[1] = -1;
  }
  // What the child writes until it ends; empty if it does not end in time.
  std::optional<std::string> read_until(Deadline deadline) {
    std::string text;
    std::array<char, 512> piece{};
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining());
      pollfd waiting{.fd = ends_[0], .events = POLLIN, .revents = 0};
      const int ready = ::poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)));
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0 && deadline.has_passed()) return std::nullopt;
      if (ready <= 0) continue;
      const ssize_t count = ::read(ends_[0], piece.data(), piece.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return text;
      text.append(piece.data(), static_cast<std::size_t>(count));
    }
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

std::optional<std::uint64_t> run_in_limited_child(std::uint64_t bytes, std::chrono::milliseconds timeout,
                                                  const std::function<void()>& work) {
  Pipe pipe;
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw system_error(errno, "cannot start a trial process");
  if (child == 0) be_the_child(bytes, pipe.writing_end(), parent, work);
  // The child alone may hold this end, or reading would never end.
  pipe.close_writing_end();
  const std::optional<std::string> text = pipe.read_until(Deadline::after(timeout));
  // The end of the pipe is the end of the child, or of its life.
  if (!text) ::kill(child, SIGKILL);
  const int status = wait_for(child);
  if (!text) {
    throw Error(ErrorCode::deadline_exceeded,
                fmt::format("a trial process has not ended within {} ms; allow it more time", timeout.count()));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitFits) return std::strtoull(text->c_str(), nullptr, 10);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitError && !text->empty()) {
    throw Error(static_cast<ErrorCode>(text->front()), text->substr(1));
  }
  return std::nullopt;
}

}  // namespace holdfast
