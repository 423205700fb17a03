#pragma once

// A program in a session of its own. Replicas have process groups of their own, but they stay in the session, so all of
// them can be found and ended.

#include <chrono>
#include <string>
#include <vector>

#include "holdfast/base/deadline.h"
#include "holdfast/base/shared_memory.h"
#include "holdfast/testing/program_run.h"

namespace holdfast::resilience {

class ProgramSession {
 public:
  // Starts the program, with `variables` ("NAME=VALUE") in its environment besides those of this process. Its standard
  // output and error are collected, and its standard input is empty. Throws Error when it cannot be executed.
  ProgramSession(std::vector<std::string> command, const std::vector<std::string>& faults,
                 const std::vector<std::string>& variables = {});
  // Kills all processes that are left.
  ~ProgramSession();
  ProgramSession(const ProgramSession&) = delete;
  ProgramSession& operator=(const ProgramSession&) = delete;

  int pid() const { return pid_; }
  // Waits until the program itself has ended; its children may live on. False when the deadline passes first.
  bool wait(Deadline deadline);
  // Ends the program and all processes of the session. Takes the exit code, or 128 + the signal's number, the output,
  // and the processes that lived on for `leave_time` after the program. Throws Error{deadline_exceeded} when killed
  // processes do not die.
  void finish(std::chrono::milliseconds leave_time, RunResult& result);

 private:
  void collect();
  // The living processes of the session, without the program itself and without zombies.
  std::vector<int> others() const;
  // Waits until no other process of the session lives. Returns those that live at the deadline.
  std::vector<int> wait_for_others(Deadline deadline) const;
  void kill_all();
  // To be called once the program has ended. Returns its exit code. Afterwards its process id may belong to another
  // process.
  int reap();

  int pid_ = -1;
  // While it is false, pid_ names the program and its session, and nothing else.
  bool is_reaped_ = false;
  FileDescriptor ended_;   // readable once the program has ended
  FileDescriptor spoken_;  // the output; closed once all its writers are gone
  std::string output_;
};

}  // namespace holdfast::resilience
