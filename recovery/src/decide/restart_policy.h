#pragma once

// How often the processes of a run are restarted, and after which pause.

#include <chrono>
#include <vector>

namespace holdfast::recovery {

using Moment = std::chrono::steady_clock::time_point;

struct RestartPolicy {
  int max_restarts = 20;  // within restart_window
  std::chrono::milliseconds restart_window = std::chrono::minutes(10);
  // The first restart comes at once, and the second after shortest_pause. Each further pause is twice as long, up to
  // longest_pause. Progress of the run starts this over.
  std::chrono::milliseconds shortest_pause{100};
  std::chrono::milliseconds longest_pause{5000};
  std::chrono::milliseconds stop_grace{8000};     // from the request to leave to SIGKILL
  std::chrono::milliseconds kill_timeout{30000};  // from SIGKILL until the process has to be gone
};

struct RestartHistory {
  std::vector<Moment> restarts;  // within the window, oldest first
  int without_progress = 0;
};

bool allows_restart(const RestartPolicy& policy, const RestartHistory& history, Moment now);
// Adds a restart, and forgets those that are older than the window.
RestartHistory with_restart(const RestartPolicy& policy, RestartHistory history, Moment now);
// The pause before the newest restart in `history`.
std::chrono::milliseconds pause_before(const RestartPolicy& policy, const RestartHistory& history);

}  // namespace holdfast::recovery
