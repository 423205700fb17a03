#pragma once

// Checks the watchdog's options, and turns them into the policy of the supervisor and the limits of the hang detector.

#include <chrono>
#include <string>
#include <vector>

#include "decide/supervisor.h"
#include "holdfast/recovery/watchdog_options.h"

namespace holdfast::recovery {

// The limit of replicas; kMaxReplicas where the options give none.
int most_replicas(const WatchdogOptions& options);
HangLimits hang_limits_of(const WatchdogOptions& options);
// From the request to leave until processes are killed.
std::chrono::milliseconds time_to_leave(const WatchdogOptions& options);
// Whether replicas may go on with a state in memory: RecoverFrom::savepoint wants states from files alone.
bool may_use_memory(const WatchdogOptions& options);
// Those of the options first, then those that the environment adds (HOLDFAST_FAULTS).
std::vector<std::string> all_faults(const WatchdogOptions& options);
SupervisorPolicy policy_of(const WatchdogOptions& options);

}  // namespace holdfast::recovery
