#pragma once

// The name in recovery of what a process is doing (holdfast/base/training_phase.h). The watchdog decides by it how long
// the process may go without progress (hang_limits.h). A worker reports it, and `holdfast status` shows it:
//
//   worker->enter(Phase::computing, step);

#include "holdfast/base/training_phase.h"

namespace holdfast::recovery {

using Phase = TrainingPhase;  // what a worker is doing

inline constexpr int kPhaseCount = kTrainingPhaseCount;  // the number of phases

}  // namespace holdfast::recovery
