#pragma once

// The processes of this host, read from /proc.

#include <optional>
#include <vector>

#include "holdfast/testing/soak.h"

namespace holdfast::resilience {

struct ProcessEntry {
  int pid = 0;
  int parent = 0;
  // The pid of the process that leads the session. Children inherit it, unless they call setsid().
  int session = 0;
  // As in proc(5): R runs, S sleeps, T is stopped, Z has ended and is not reaped yet.
  char state = '?';

  bool is_zombie() const { return state == 'Z' || state == 'X'; }
};

// Empty when there is no such process.
std::optional<ProcessEntry> process_entry(int pid);
// A process that starts or ends during the call may be missing.
std::vector<ProcessEntry> processes_of_session(int session);
std::vector<ProcessEntry> children_of(int pid);

// What a process holds, without its zombies; all zero when it is gone.
WatchdogSize holdings_of(int pid);

}  // namespace holdfast::resilience
