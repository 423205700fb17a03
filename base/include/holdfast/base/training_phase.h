#pragma once

// What a training process is doing. The SDK reports it, the watchdog decides by it how long the process may go without
// progress, and `holdfast status` shows it. Recovery's headers call this type recovery::Phase.
//
// A Trainer reports its phases itself. A program without one calls Worker::enter(), or holdfast_worker_enter() in C. By
// default a process may be without progress for 120 s while it starts, 60 s while it regroups, 10 minutes in callbacks,
// and 30 s in evaluating, saving, reading_data and finishing. For computing and updating the limit follows from the
// steps before. All limits and exceptions: holdfast/recovery/hang_limits.h.

#include <string_view>

namespace holdfast {

// The numbers are in the memory that a process shares with its watchdog, and in worker_c.h: add new ones at the end.
enum class TrainingPhase {
  starting,           // the process prepares, and is in no generation yet
  computing,          // the forward and backward passes of a step
  waiting_for_peers,  // no limit holds here, since a peer is to blame
  updating,           // the optimizer changes the weights
  saving,             // also while states are compared, which comes before a savepoint
  callbacks,          // in code of the application that training calls
  evaluating,         // evaluate(), predict(), and validation within fit()
  finishing,          // training is over, and its end is recorded
  regrouping,         // leaves a generation and enters the next. Worker::regroup() sets it; training never names it
  reading_data,       // waits for the next batch
};

inline constexpr int kTrainingPhaseCount = 10;  // the number of enumerators above

// The enumerator's name, as written above. "unknown" for another number.
std::string_view to_string(TrainingPhase phase);

}  // namespace holdfast
