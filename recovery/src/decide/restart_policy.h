#pragma once

// How often the processes of a run are restarted, and after which pause.

#include <chrono>
#include <string>
#include <vector>

#include "holdfast/base/recovery_options.h"

namespace holdfast::recovery {

using Moment = std::chrono::steady_clock::time_point;

struct RestartPolicy {
  // The first restart comes at once, and the second after shortest_pause. Each further pause is twice as long, up to
  // longest_pause. Progress of the run starts this over.
  std::chrono::milliseconds shortest_pause{100};
  std::chrono::milliseconds longest_pause{5000};
  std::chrono::milliseconds kill_timeout{30000};  // from SIGKILL until the process has to be gone
};

struct RestartHistory {
  std::vector<Moment> restarts;  // within the window, oldest first
  int without_progress = 0;
};

// Whether `moment` lies in the window that ends now.
bool is_recent(const RecoveryOptions& options, Moment moment, Moment now);
bool allows_restart(const RecoveryOptions& options, const RestartHistory& history, Moment now);
// Adds a restart, and forgets those that are older than the window.
RestartHistory with_restart(const RecoveryOptions& options, RestartHistory history, Moment now);
// How many restarts are allowed, as "20 restarts within 600 s".
std::string restart_limit(const RecoveryOptions& options);
// The sentence of a run that ends because it needs one restart more.
std::string budget_spent(const RecoveryOptions& options);
// The pause before the newest restart in `history`.
std::chrono::milliseconds pause_before(const RestartPolicy& policy, const RestartHistory& history);

}  // namespace holdfast::recovery
