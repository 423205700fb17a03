#pragma once

// The processes of this host, as /proc tells.

#include <cstdint>
#include <optional>
#include <vector>

namespace holdfast::resilience {

struct ProcessEntry {
  int pid = 0;
  int parent = 0;
  int session = 0;
  char state = '?';

  bool is_zombie() const { return state == 'Z' || state == 'X'; }
};

std::optional<ProcessEntry> process_entry(int pid);
// Those that were there all the while; others may be missing.
std::vector<ProcessEntry> processes_of_session(int session);
std::vector<ProcessEntry> children_of(int pid);

// What a process holds; zeros for one that is gone.
struct Holdings {
  std::int64_t resident_kilobytes = 0;
  int descriptors = 0;
  int threads = 0;
};

Holdings holdings_of(int pid);

}  // namespace holdfast::resilience
