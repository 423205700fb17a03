#pragma once

// Writes what happens to savepoints into the run's journal, and into the log if a user should know it.

#include <chrono>
#include <string>

#include "holdfast/train/savepoint.h"
#include "train/context/replica_context.h"

namespace holdfast {

class SavepointJournal {
 public:
  // `supervision` must outlive it.
  explicit SavepointJournal(Supervision& supervision) : supervision_(supervision) {}

  // Any thread, but one thread at a time for progress. Progress is written at most every ten seconds.
  void note(const SavepointEvent& event);

 private:
  using Clock = std::chrono::steady_clock;

  Supervision& supervision_;
  Clock::time_point last_progress_ = Clock::now();
};

}  // namespace holdfast
