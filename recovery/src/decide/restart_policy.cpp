// Restarts are limited within a window and not over the whole run. A run of weeks may lose a process now and then. A
// program that fails at each start should end soon.

#include "decide/restart_policy.h"

#include <algorithm>

#include <fmt/format.h>

#include "decide/supervisor_text.h"

namespace holdfast::recovery {

bool is_recent(const RecoveryOptions& options, Moment moment, Moment now) {
  return now - moment < options.restart_window;
}

bool allows_restart(const RecoveryOptions& options, const RestartHistory& history, Moment now) {
  const auto recent = std::count_if(history.restarts.begin(), history.restarts.end(),
                                    [&](Moment restart) { return is_recent(options, restart, now); });
  return recent < options.max_restarts;
}

RestartHistory with_restart(const RecoveryOptions& options, RestartHistory history, Moment now) {
  // An older restart never counts again. Without this the list would grow with the run.
  std::erase_if(history.restarts, [&](Moment restart) { return !is_recent(options, restart, now); });
  history.restarts.push_back(now);
  ++history.without_progress;
  return history;
}

std::string restart_limit(const RecoveryOptions& options) {
  return fmt::format("{} within {}", counted(options.max_restarts, "restart"), seconds(options.restart_window));
}

std::string budget_spent(const RecoveryOptions& options) {
  return fmt::format("gave up after {}, the limit of max_restarts and restart_window", restart_limit(options));
}

// The first restart comes at once, since most failures do not repeat.
std::chrono::milliseconds pause_before(const RestartPolicy& policy, const RestartHistory& history) {
  if (history.without_progress <= 1) return {};
  std::chrono::milliseconds pause = policy.shortest_pause;
  // Doubled step by step: a power of two would overflow after many restarts.
  for (int i = 2; i < history.without_progress && pause < policy.longest_pause; ++i) pause *= 2;
  return std::min(pause, policy.longest_pause);
}

}  // namespace holdfast::recovery
