// Starts programs in process groups of their own, so that a test that gives up leaves no process of theirs running.

#include "support/program.h"
#include "support/folders.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

namespace holdfast {
namespace {

using Clock = std::chrono::steady_clock;

// Appends the program's output until the program closes it, or `text` is in it. Returns false when `until` comes first.
bool collect(int descriptor, Clock::time_point until, std::string& output, const std::string& text = {}) {
  while (text.empty() || output.find(text) == std::string::npos) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return false;
    pollfd poll_descriptor{descriptor, POLLIN, 0};
    if (::poll(&poll_descriptor, 1, static_cast<int>(left)) <= 0) continue;
    char buffer[4096];
    const ssize_t bytes = ::read(descriptor, buffer, sizeof buffer);
    if (bytes <= 0) return true;
    output.append(buffer, static_cast<std::size_t>(bytes));
  }
  return true;
}

// Blocks until the process has ended. Returns false when `until` comes first.
bool is_over(int pid, Clock::time_point until) {
  while (Clock::now() < until) {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0) return true;
    if (info.si_pid == pid) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace

RunningProgram::RunningProgram(const std::string& path, const std::vector<std::string>& arguments,
                               const std::function<void()>& before_exec) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  std::vector<std::string> all = {path};
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& argument : all) pointers.push_back(argument.data());
  pointers.push_back(nullptr);

  pid_ = ::fork();
  if (pid_ == 0) {
    ::setpgid(0, 0);
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    ::signal(SIGPIPE, SIG_DFL);  // it may be ignored in the process that started the tests
    if (before_exec) before_exec();
    ::execv(path.c_str(), pointers.data());
    ::_exit(127);
  }
  ::setpgid(pid_, pid_);
  ::close(ends[1]);
  output_ = ends[0];
}

RunningProgram::~RunningProgram() {
  if (!is_reaped_) {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (output_ >= 0) ::close(output_);
}

void RunningProgram::signal(int number) const {
  ::kill(pid_, number);
}

void RunningProgram::close_output() {
  ::close(std::exchange(output_, -1));
}

bool RunningProgram::writes(const std::string& text, std::chrono::seconds limit) {
  return collect(output_, Clock::now() + limit, collected_, text) && collected_.find(text) != std::string::npos;
}

ProgramResult RunningProgram::wait(std::chrono::seconds limit) {
  ProgramResult result;
  const Clock::time_point until = Clock::now() + limit;
  result.timed_out = output_ < 0 ? !is_over(pid_, until) : !collect(output_, until, collected_);
  result.output = std::move(collected_);
  if (result.timed_out) ::kill(-pid_, SIGKILL);
  int status = 0;
  ::waitpid(pid_, &status, 0);
  is_reaped_ = true;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

ProgramResult run_program(const std::string& path, const std::vector<std::string>& arguments,
                          std::chrono::seconds limit) {
  return RunningProgram(path, arguments).wait(limit);
}

std::string built_program(const std::string& name) {
  return program_folder() + "/" + name;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace holdfast
