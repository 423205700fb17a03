#pragma once

// A program in a session of its own. Replicas have process groups of their own, but they stay in the session, so all of
// them can be found and ended.

#include <chrono>
#include <string>
#include <vector>

#include "holdfast/base/deadline.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast::resilience {

// How long the kernel may take to end killed processes.
inline constexpr std::chrono::seconds kKillTimeout(20);

class ProgramSession {
 public:
  // Starts the program. Its standard output and error are collected, and its standard input is empty. Throws Error when
  // it cannot be executed.
  ProgramSession(std::vector<std::string> command, const std::vector<std::string>& faults);
  // Kills all processes that are left.
  ~ProgramSession();
  ProgramSession(const ProgramSession&) = delete;
  ProgramSession& operator=(const ProgramSession&) = delete;

  int pid() const { return pid_; }
  // Waits until the program itself has ended; its children may live on. False when the deadline passes first.
  bool wait(Deadline deadline);
  // The living processes of the session, without the program itself and without zombies.
  std::vector<int> others() const;
  // Waits until no other process of the session lives. Returns those that live at the deadline.
  std::vector<int> wait_for_others(Deadline deadline) const;
  // Kills all processes of the session. Throws Error{deadline_exceeded} when they do not die.
  void kill_all(Deadline deadline);
  // To be called once the program has ended. Returns its exit code, or 128 + the signal's number. Afterwards its
  // process id may belong to another process.
  int reap();
  const std::string& output() const { return output_; }

 private:
  void collect();

  int pid_ = -1;
  // While it is false, pid_ names the program and its session, and nothing else.
  bool is_reaped_ = false;
  FileDescriptor ended_;   // readable once the program has ended
  FileDescriptor spoken_;  // the output; closed once all its writers are gone
  std::string output_;
};

}  // namespace holdfast::resilience
