// Processes are spawned by hand: Boost.Process 1.74 can neither set the parent-death signal before the program runs,
// nor hand over descriptors without a race. Between fork and exec the child may not allocate, because another thread of
// the parent may have held a lock at the fork. docs/decisions/processes.md

#include "process/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "channel/descriptors.h"
#include "detect/cpu_time.h"
#include "holdfast/base/error.h"
#include "holdfast/base/threads.h"
#include "process/open_descriptors.h"
#include "process/signals.h"

namespace holdfast::recovery {
namespace {

// How long the destructor waits for a killed process. The kernel may have to write back or free its memory first.
constexpr std::chrono::seconds kReapTimeout(10);

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

// A variable that is given replaces the one of this process.
std::vector<std::string> environment_with(const std::vector<std::string>& variables) {
  std::vector<std::string> environment = variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const bool is_replaced = std::any_of(variables.begin(), variables.end(), [entry](const auto& variable) {
      return name_of(variable) == name_of(*entry);
    });
    if (!is_replaced) environment.emplace_back(*entry);
  }
  return environment;
}

// Made before the fork, since the child may not allocate. The texts must outlive them.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// Everything that the child needs. It is made before the fork.
struct Plan {
  const char* executable;
  char** arguments;
  char** environment;
  const std::vector<int>* inherited;
  sigset_t signal_mask;
  pid_t parent;
  int null_device;
  int error_pipe;
  bool ignores_failing_writes;
};

// In the child a handler of the parent would write into the parent's pipes.
// A signal that the user ignores, as nohup does with SIGHUP, stays ignored.
void reset_signal_handlers() {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action.sa_handler = SIG_DFL;
    action.sa_flags = 0;
    ::sigaction(signal, &action, nullptr);
  }
}

// Makes only async-signal-safe calls.
[[noreturn]] void become(const Plan& plan) {
  // A group of its own: a signal from the terminal reaches the watchdog alone, which then decides what its replicas
  // do.
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the line above.
  if (::getppid() != plan.parent) ::_exit(127);
  // A process outside of the terminal's foreground group that reads from it would be stopped by SIGTTIN.
  ::dup2(plan.null_device, STDIN_FILENO);
  // The program may have opened files without O_CLOEXEC. Replicas would keep them open.
  close_on_exec_from(STDERR_FILENO + 1);
  for (const int descriptor : *plan.inherited) ::fcntl(descriptor, F_SETFD, 0);
  reset_signal_handlers();
  if (plan.ignores_failing_writes) ignore_failing_writes();
  ::sigprocmask(SIG_SETMASK, &plan.signal_mask, nullptr);
  ::execve(plan.executable, plan.arguments, plan.environment);
  const int error_number = errno;
  [[maybe_unused]] const ssize_t written = ::write(plan.error_pipe, &error_number, sizeof error_number);
  ::_exit(127);
}

std::pair<FileDescriptor, FileDescriptor> create_pipe() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) throw system_error(errno, "cannot create a pipe");
  const FileDescriptor reading(ends[0]);
  const FileDescriptor writing(ends[1]);
  return {duplicate(reading.value()), duplicate(writing.value())};
}

FileDescriptor open_null_device() {
  const FileDescriptor device(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!device.is_open()) throw system_error(errno, "cannot open /dev/null");
  return duplicate(device.value());
}

}  // namespace

Process Process::spawn(const SpawnOptions& options, Deadline deadline) {
  Begun begun = begin(options);
  if (!wait_for_descriptor(begun.exec.value(), POLLIN, deadline)) {
    throw Error(ErrorCode::deadline_exceeded, fmt::format("the start of {} took too long", options.executable));
  }
  check_exec(begun.exec.value(), options.executable);
  return std::move(begun.process);
}

// The pipe closes at a successful exec; otherwise the child writes its errno.
void Process::check_exec(int exec, const std::string& executable) {
  int error_number = 0;
  const ssize_t bytes = TEMP_FAILURE_RETRY(::read(exec, &error_number, sizeof error_number));
  const bool is_without_proc = error_number == ENOENT && executable.starts_with("/proc/");
  if (bytes > 0) {
    throw system_error(error_number, fmt::format("cannot execute {}{}", executable,
                                                 is_without_proc ? " (is /proc mounted here?)" : ""));
  }
}

Process::Begun Process::begin(const SpawnOptions& options) {
  std::vector<std::string> arguments = options.arguments;
  std::vector<std::string> environment = environment_with(options.variables);
  const std::vector<char*> argument_pointers = pointers(arguments);
  const std::vector<char*> environment_pointers = pointers(environment);
  const FileDescriptor null_device = open_null_device();
  auto [reading, writing] = create_pipe();
  Plan plan{.executable = options.executable.c_str(),
            .arguments = const_cast<char**>(argument_pointers.data()),
            .environment = const_cast<char**>(environment_pointers.data()),
            .inherited = &options.inherited,
            .signal_mask = {},
            .parent = ::getpid(),
            .null_device = null_device.value(),
            .error_pipe = writing.value(),
            .ignores_failing_writes = options.ignores_failing_writes};
  const pid_t pid = fork_with_signals_blocked(plan.signal_mask, [&plan] { become(plan); });
  if (pid < 0) throw start_error(errno, fmt::format("a process for {}", options.executable));
  // Otherwise the pipe would never close, and the wait for the exec would last until its deadline.
  writing.reset();
  FileDescriptor descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  Process process(pid, std::move(descriptor));
  if (!process.descriptor_.is_open()) {
    const Error error = system_error(errno, fmt::format("cannot watch process {} (Linux 5.3 is needed)", pid));
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    throw error;
  }
  return {.process = std::move(process), .exec = std::move(reading)};
}

Process::Process(int pid, FileDescriptor descriptor) : pid_(pid), descriptor_(std::move(descriptor)) {}

Process::~Process() {
  if (!descriptor_.is_open() || try_reap()) return;
  kill_group();
  wait_for_descriptor(descriptor_.value(), POLLIN, Deadline::after(kReapTimeout));
  try_reap();
}

void Process::signal_group(int signal) const {
  if (!exit_status_) ::kill(-pid_, signal);
}

void Process::kill_group() const {
  // The number of a reaped process may belong to another process.
  if (exit_status_) return;
  ::kill(-pid_, SIGKILL);
  // The group exists only after the child's setpgid().
  ::kill(pid_, SIGKILL);
}

// The process stays unreaped (WNOWAIT), so its number and that of its group stay taken.
bool Process::has_ended() const {
  if (exit_status_) return true;
  siginfo_t info{};
  const id_t process = static_cast<id_t>(pid_);
  const bool is_known = TEMP_FAILURE_RETRY(::waitid(P_PID, process, &info, WEXITED | WNOHANG | WNOWAIT)) == 0;
  return !is_known || info.si_pid == pid_;
}

std::optional<ExitStatus> Process::try_reap() {
  if (exit_status_) return exit_status_;
  if (!has_ended()) return std::nullopt;
  kill_group();
  int status = 0;
  const auto pid = TEMP_FAILURE_RETRY(::waitpid(pid_, &status, WNOHANG));
  if (pid == 0) return std::nullopt;
  if (pid < 0) {
    // The process was reaped elsewhere, as happens where SIGCHLD is ignored.
    exit_status_ = ExitStatus{.code = -1};
  } else if (WIFSIGNALED(status)) {
    exit_status_ = ExitStatus{.signal = WTERMSIG(status)};
  } else {
    exit_status_ = ExitStatus{.code = WEXITSTATUS(status)};
  }
  return exit_status_;
}

bool Process::is_stopped() const {
  if (exit_status_) return false;
  std::ifstream file(fmt::format("/proc/{}/stat", pid_));
  std::string line;
  std::getline(file, line);
  // The state follows the program's name, which is in parentheses and may contain any character.
  const std::size_t bracket = line.rfind(')');
  return bracket != std::string::npos && line.size() > bracket + 2 && line[bracket + 2] == 'T';
}

std::chrono::nanoseconds Process::cpu_demand() const {
  return exit_status_ ? std::chrono::nanoseconds::zero() : recovery::cpu_demand(pid_);
}

}  // namespace holdfast::recovery
