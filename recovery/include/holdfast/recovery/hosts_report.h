#pragma once

// What a check of all hosts of a run has found (check_hosts.h).

#include <string>
#include <vector>

namespace holdfast::recovery {

// A thing that was checked.
struct HostCheck {
  int host = 0;           // its number
  std::string what{};     // such as "run directory"
  std::string found{};    // where nothing is wrong
  std::string problem{};  // empty: nothing is wrong
  std::string remedy{};   // what to do about the problem
};

// What one host knows when the check is over.
struct HostsReport {
  int host = 0;                     // this one
  std::vector<HostCheck> checks{};  // by host; empty on all hosts but host 0
  std::string sentence{};           // the outcome
  bool is_well = false;             // nothing is wrong
};

}  // namespace holdfast::recovery
