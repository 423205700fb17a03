#pragma once

// A program in a session of its own: replicas have process groups of their own, but stay in the session of who started
// them, so that all can be found and ended.

#include <chrono>
#include <string>
#include <vector>

#include "holdfast/base/deadline.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast::resilience {

// What the kernel needs at most for the end of those that are killed.
inline constexpr std::chrono::seconds kKillTimeout(20);

class Session {
 public:
  // Its output and its complaints are collected; it has nothing to read. Throws Error when it cannot be executed.
  Session(std::vector<std::string> command, const std::vector<std::string>& faults);
  // Kills all that is left.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int pid() const { return pid_; }
  // False when the deadline passes before the program itself has ended. Its children may live on.
  bool wait(Deadline deadline);
  // Of the program's processes all that live, itself and zombies left out.
  std::vector<int> others() const;
  // Waits until there are none of them; returns those that are there at the deadline.
  std::vector<int> wait_for_others(Deadline deadline) const;
  // Throws Error{deadline_exceeded} when they do not die.
  void kill_all(Deadline deadline);
  // Once it has ended: its exit code, or 128 and the signal. Its number may be another process's afterwards.
  int reap();
  const std::string& output() const { return output_; }

 private:
  void collect();

  int pid_ = -1;
  bool is_reaped_ = false;
  FileDescriptor ended_;   // readable once the program has ended
  FileDescriptor spoken_;  // closed when all that could speak are gone
  std::string output_;
};

}  // namespace holdfast::resilience
