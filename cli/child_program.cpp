// The three standard streams are files in memory, not pipes. So the child never waits for this process, and waiting for
// its end is all that is left to do. A process descriptor cannot be confused with a later process of the same number.

#include "child_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "holdfast/base/error.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast::cli {
namespace {

// No drawing of a model is larger.
constexpr off_t kMaxStreamBytes = off_t{256} << 20;

FileDescriptor memory_file(const char* name) {
  // Above the numbers of the standard streams, so that moving one there cannot overwrite another.
  const FileDescriptor made(::memfd_create(name, MFD_CLOEXEC));
  FileDescriptor file(made.is_open() ? ::fcntl(made.value(), F_DUPFD_CLOEXEC, 16) : -1);
  if (!file.is_open()) throw system_error(errno, "cannot make a file in memory for another program");
  return file;
}

void write_input(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(file, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw system_error(errno, "cannot write the input of another program");
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  // The child shares the position in the file, and would begin to read at the end.
  if (::lseek(file, 0, SEEK_SET) != 0) throw system_error(errno, "cannot rewind the input of another program");
}

std::string stream_content(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0) throw system_error(errno, "cannot read the output of another program");
  // The size is what another program wrote, so it has a limit.
  std::string text(static_cast<std::size_t>(std::min(status.st_size, kMaxStreamBytes)), '\0');
  const ssize_t count = ::pread(file, text.data(), text.size(), 0);
  if (count < 0) throw system_error(errno, "cannot read the output of another program");
  text.resize(static_cast<std::size_t>(count));
  return text;
}

void require_success(int error_number) {
  if (error_number != 0) throw system_error(error_number, "cannot prepare the start of another program");
}

class ChildPlan {
 public:
  ChildPlan(int input, int output, int problems) {
    require_success(posix_spawn_file_actions_init(&actions_));
    require_success(posix_spawnattr_init(&attributes_));
    require_success(posix_spawn_file_actions_adddup2(&actions_, input, STDIN_FILENO));
    require_success(posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO));
    require_success(posix_spawn_file_actions_adddup2(&actions_, problems, STDERR_FILENO));
    sigset_t none;
    sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    // Masks and ignored signals are inherited. A child with SIGTERM blocked could not be ended by its user.
    require_success(posix_spawnattr_setsigmask(&attributes_, &none));
    require_success(posix_spawnattr_setsigdefault(&attributes_, &all));
    // A group of its own, so that programs that the child starts can be killed with it.
    require_success(posix_spawnattr_setpgroup(&attributes_, 0));
    require_success(
        posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP));
  }
  ~ChildPlan() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }
  ChildPlan(const ChildPlan&) = delete;
  ChildPlan& operator=(const ChildPlan&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// The exit code of the child, or empty where the deadline passed. The child is reaped and its group killed afterwards.
std::optional<int> wait_for_child(pid_t pid, Deadline deadline) {
  const FileDescriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  bool has_ended = false;
  while (process.is_open() && !has_ended && !deadline.has_passed()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining()).count();
    pollfd entry{.fd = process.value(), .events = POLLIN, .revents = 0};
    has_ended = ::poll(&entry, 1, static_cast<int>(std::min<long>(left, 1'000'000))) > 0;
  }
  // Before the child is reaped, while no other group can have its number.
  ::kill(-pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!has_ended) return std::nullopt;
  // As shells count it.
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

std::optional<ChildResult> run_child(const std::vector<std::string>& command, std::string_view input,
                                     Deadline deadline) {
  const FileDescriptor in = memory_file("input"), out = memory_file("output"), problems = memory_file("problems");
  write_input(in.value(), input);
  std::vector<std::string> arguments = command;
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const ChildPlan plan(in.value(), out.value(), problems.value());
  pid_t pid = -1;
  const int result = ::posix_spawnp(&pid, pointers[0], plan.actions(), plan.attributes(), pointers.data(), ::environ);
  // A program that is not installed is not an error here: the caller has another way.
  if (result == ENOENT) return std::nullopt;
  if (result != 0) throw system_error(result, fmt::format("cannot start {}", command[0]));
  const std::optional<int> exit_code = wait_for_child(pid, deadline);
  if (!exit_code) {
    throw Error(ErrorCode::deadline_exceeded, fmt::format("{} did not end in time and was stopped", command[0]));
  }
  return ChildResult{
      .exit_code = *exit_code, .output = stream_content(out.value()), .problems = stream_content(problems.value())};
}

}  // namespace holdfast::cli
