#pragma once

// How often and how soon a run is started again.

#include <chrono>
#include <vector>

#include "holdfast/base/recovery_options.h"

namespace holdfast::recovery {

using Moment = std::chrono::steady_clock::time_point;

struct RestartPolicy {
  // The first restart comes at once, the second after shortest_pause, then twice as late each time; progress starts
  // that afresh.
  std::chrono::milliseconds shortest_pause{100};
  std::chrono::milliseconds longest_pause{5000};
  std::chrono::milliseconds kill_timeout{30000};  // for a killed process to be gone
};

struct RestartHistory {
  std::vector<Moment> restarts;  // within the window, oldest first
  int without_progress = 0;
};

bool allows_restart(const RecoveryOptions& options, const RestartHistory& history, Moment now);
// Forgets what is older than the window.
RestartHistory with_restart(const RecoveryOptions& options, RestartHistory history, Moment now);
// Before the newest restart in `history`.
std::chrono::milliseconds pause_before(const RestartPolicy& policy, const RestartHistory& history);

}  // namespace holdfast::recovery
