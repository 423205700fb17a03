#pragma once

// What a training process is doing. The SDK reports it, the watchdog decides by it how long the process may go without
// progress, and `holdfast status` shows it. Recovery's headers call this type recovery::Phase.

#include <string_view>

namespace holdfast {

// The numbers are in the memory that a process shares with its watchdog, and in worker_c.h: add new ones at the end.
enum class TrainingPhase {
  starting,
  computing,
  waiting_for_peers,
  updating,
  saving,  // also while states are compared, which comes before a savepoint
  callbacks,  // in code of the application that training calls
  evaluating,
  finishing,
  regrouping,  // leaves a generation and enters the next. Worker::regroup() sets it; training never names it
  reading_data,
};

inline constexpr int kTrainingPhaseCount = 10;

// The enumerator's name, as written above. "unknown" for another number.
std::string_view to_string(TrainingPhase phase);

}  // namespace holdfast
