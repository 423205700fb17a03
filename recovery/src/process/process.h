#pragma once

// A child process that cannot outlive its owner: it is killed and reaped by the destructor, and by the kernel when the
// thread that spawned it dies.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/base/deadline.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast::recovery {

struct SpawnOptions {
  std::string executable{};
  std::vector<std::string> arguments{};  // the program's name first
  std::vector<std::string> variables{};  // "NAME=VALUE", added to this process's environment
  std::vector<int> inherited{};         // descriptors above 2 that stay open under their numbers; all others are closed
  bool ignores_failing_writes = false;  // SIGPIPE and SIGXFSZ; false: it has what this process was started with
};

struct ExitStatus {
  int code = 0;
  int signal = 0;  // 0: it exited with `code`
};

class Process {
 public:
  // Returns once the program runs, in a process group of its own, with /dev/null as standard input. Throws
  // Error{not_found, refused, input_output, deadline_exceeded} naming the executable.
  static Process spawn(const SpawnOptions& options, Deadline deadline);

  struct Begun;
  // As spawn(), but does not wait until the program runs.
  static Begun begin(const SpawnOptions& options);
  // `exec` is readable. Throws the Error of a program that cannot run.
  static void check_exec(int exec, const std::string& executable);

  ~Process();
  Process(Process&&) noexcept = default;
  Process& operator=(Process&&) = delete;

  int pid() const { return pid_; }
  // Readable once the process has ended.
  int descriptor() const { return descriptor_.value(); }

  // To the process and to what it has started in its group.
  void signal_group(int signal) const;
  // SIGKILL to the process and to what it has started in its group.
  void kill_group() const;
  // Until the process is reaped, no other process or group gets its number.
  bool has_ended() const;
  // Empty while the process runs; afterwards always the same status. Kills what the process left in its group.
  std::optional<ExitStatus> try_reap();
  // Stopped by SIGSTOP or a terminal. False once it has ended.
  bool is_stopped() const;
  // See cpu_time.h. Zero once it has ended.
  std::chrono::nanoseconds cpu_demand() const;

 private:
  Process(int pid, FileDescriptor descriptor);

  int pid_;
  FileDescriptor descriptor_;  // closed after a move
  std::optional<ExitStatus> exit_status_;
};

struct Process::Begun {
  Process process;
  FileDescriptor exec;  // readable once the program runs, or cannot
};

}  // namespace holdfast::recovery
