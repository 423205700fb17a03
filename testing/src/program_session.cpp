// Processes of a program under test may outlive it, and tests must find them. Process groups do not help, since
// replicas have their own. The session does, as long as no process calls setsid(). See docs/decisions/testing.md.

#include "program_session.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/recovery/faults.h"
#include "process_table.h"

namespace holdfast::resilience {
namespace {

// Only the end of the output is kept: it has the reason, and a long run would fill the memory.
constexpr std::size_t kMostOutput = std::size_t{64} * 1024;
constexpr std::chrono::milliseconds kLook(10);
// How long the kernel may take to end killed processes.
constexpr std::chrono::seconds kKillTimeout(20);

// "NAME=VALUE" without the value.
std::string_view name_in(std::string_view variable) {
  return variable.substr(0, variable.find('=') + 1);
}

std::vector<std::string> environment_with(const std::vector<std::string>& faults, std::vector<std::string> variables) {
  // Faults in the environment of the test itself are not meant for this run, so the empty ones replace them.
  variables.push_back(fmt::format("{}={}", recovery::kFaultsVariable, fmt::join(faults, ";")));
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const auto replaces = [&](const std::string& variable) { return name_in(variable) == name_in(*entry); };
    if (std::none_of(variables.begin(), variables.end(), replaces)) environment.emplace_back(*entry);
  }
  if (faults.empty()) variables.pop_back();
  environment.insert(environment.end(), variables.begin(), variables.end());
  return environment;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::pair<FileDescriptor, FileDescriptor> create_pipe() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) throw system_error(errno, "cannot create a pipe");
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// Runs in the child between fork and exec, so it makes only system calls.
[[noreturn]] void become(char* const* arguments, char* const* environment, int output, int error_pipe, int parent) {
  ::setsid();
  // The program must not outlive a test that crashes. A parent that died before this call is noticed by the next
  // one.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execvpe(arguments[0], arguments, environment);
  const int error_number = errno;
  [[maybe_unused]] const ssize_t written = ::write(error_pipe, &error_number, sizeof error_number);
  ::_exit(127);
}

}  // namespace

ProgramSession::ProgramSession(std::vector<std::string> command, const std::vector<std::string>& faults,
                               const std::vector<std::string>& variables) {
  std::vector<std::string> environment = environment_with(faults, variables);
  const std::vector<char*> arguments = pointers(command);
  const std::vector<char*> all_variables = pointers(environment);
  auto [reading, writing] = create_pipe();
  auto [error_reading, error_writing] = create_pipe();
  // wait() looks for the end of the program and for its output, and may block in neither.
  ::fcntl(reading.value(), F_SETFL, O_NONBLOCK);
  const int parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) become(arguments.data(), all_variables.data(), writing.value(), error_writing.value(), parent);
  if (pid_ < 0) throw system_error(errno, fmt::format("cannot fork a process for {}", command.front()));
  ended_ = FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  spoken_ = std::move(reading);
  writing.reset();
  error_writing.reset();
  int error_number = ended_.is_open() ? 0 : errno;
  if (error_number == 0) {
    // A successful exec closes the pipe; a failed one writes the error's number to it.
    while (::read(error_reading.value(), &error_number, sizeof error_number) < 0 && errno == EINTR) continue;
  }
  if (error_number == 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  throw system_error(error_number, fmt::format("cannot run the program {}", command.front()));
}

ProgramSession::~ProgramSession() {
  try {
    kill_all();
    if (!is_reaped_) reap();
  } catch (const std::exception&) {
    // Nothing more can be done when the kernel does not end a process.
  }
}

bool ProgramSession::wait(Deadline deadline) {
  for (;;) {
    pollfd descriptors[2] = {{ended_.value(), POLLIN, 0}, {spoken_.value(), POLLIN, 0}};
    // Rounded up. Otherwise the last part of a millisecond would be spent in a busy loop.
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining()).count();
    const int ready = ::poll(descriptors, 2, static_cast<int>(std::min<std::int64_t>(left, 60'000)));
    if (ready > 0 && descriptors[1].revents != 0) collect();
    if (ready > 0 && descriptors[0].revents != 0) {
      collect();
      return true;
    }
    if (deadline.has_passed()) return false;
  }
}

void ProgramSession::collect() {
  char buffer[8192];
  ssize_t bytes = 0;
  while (spoken_.is_open() && (bytes = ::read(spoken_.value(), buffer, sizeof buffer)) > 0) {
    output_.append(buffer, static_cast<std::size_t>(bytes));
    if (output_.size() > kMostOutput) output_.erase(0, output_.size() - kMostOutput);
  }
  // poll(2) reports a pipe without writers as readable at once, each time.
  if (bytes == 0) spoken_.reset();
}

std::vector<int> ProgramSession::others() const {
  std::vector<int> pids;
  for (const ProcessEntry& entry : processes_of_session(pid_)) {
    if (entry.pid != pid_ && !entry.is_zombie()) pids.push_back(entry.pid);
  }
  return pids;
}

std::vector<int> ProgramSession::wait_for_others(Deadline deadline) const {
  std::vector<int> left = others();
  while (!left.empty() && !deadline.has_passed()) {
    std::this_thread::sleep_for(kLook);
    left = others();
  }
  return left;
}

void ProgramSession::kill_all() {
  const Deadline deadline = Deadline::after(kKillTimeout);
  // After it was reaped, its number may be the session of other processes.
  if (is_reaped_) return;
  ::kill(pid_, SIGKILL);
  for (;;) {
    const std::vector<int> left = others();
    // In a loop, because a process may start another one between the look and the signal.
    for (const int pid : left) ::kill(pid, SIGKILL);
    if (left.empty() && wait(Deadline::after(kLook))) return;
    if (deadline.has_passed()) {
      throw Error(ErrorCode::deadline_exceeded,
                  fmt::format("the program's process {} and {} others did not end after SIGKILL", pid_, left.size()));
    }
    std::this_thread::sleep_for(kLook);
  }
}

void ProgramSession::finish(std::chrono::milliseconds leave_time, RunResult& result) {
  // A program that is late is killed with all of its processes, so none of them counts as left.
  if (!result.is_out_of_time) result.processes_left = wait_for_others(Deadline::after(leave_time));
  kill_all();
  result.exit_code = reap();
  result.output = output_;
}

int ProgramSession::reap() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
  is_reaped_ = true;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace holdfast::resilience
