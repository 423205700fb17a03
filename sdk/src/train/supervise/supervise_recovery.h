#pragma once

// What SuperviseOptions and RecoveryOptions have in common.

#include "holdfast/base/recovery_options.h"
#include "holdfast/train/supervise.h"

namespace holdfast {

// The members of `options` that RecoveryOptions has, too. Nowhere else do the options of a user become those of the
// watchdog and its supervisor.
RecoveryOptions recovery_options_of(const SuperviseOptions& options);

}  // namespace holdfast
