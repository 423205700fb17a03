#pragma once

// Checks the watchdog's options, and turns them into the policy of the supervisor and the limits of the hang detector.

#include "decide/supervisor.h"
#include "holdfast/recovery/watchdog.h"

namespace holdfast::recovery {

// The limit of replicas; kMaxReplicas where the options give none.
int most_replicas(const WatchdogOptions& options);
HangLimits hang_limits_of(const WatchdogOptions& options);
SupervisorPolicy policy_of(const WatchdogOptions& options);

}  // namespace holdfast::recovery
