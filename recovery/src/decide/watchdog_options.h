#pragma once

// The watchdog's options: whether they make sense, and what they are to the supervisor.

#include "decide/supervisor.h"
#include "holdfast/recovery/watchdog.h"

namespace holdfast::recovery {

int most_replicas(const WatchdogOptions& options);
HangLimits hang_limits_of(const WatchdogOptions& options);
SupervisorPolicy policy_of(const WatchdogOptions& options);

}  // namespace holdfast::recovery
