#pragma once

// Writes what happens to savepoints into the run's journal, and into the log if a user should know it.

#include <atomic>
#include <chrono>
#include <string>

#include "holdfast/train/savepoint.h"
#include "train/context/replica_context.h"

namespace holdfast {

class SavepointJournal {
 public:
  // `supervision` must outlive it.
  explicit SavepointJournal(Supervision& supervision) : supervision_(supervision) {}

  // What follows is of the savepoint that the run's story tells, which is that of rank 0; otherwise it is of one that
  // another host writes for itself, and only what goes wrong with it is told. Any thread.
  void speak(bool is_told) { is_told_ = is_told; }
  // Any thread, but one thread at a time for progress. Progress is written at most every ten seconds.
  void note(const SavepointEvent& event);

 private:
  using Clock = std::chrono::steady_clock;

  Supervision& supervision_;
  std::atomic<bool> is_told_ = true;
  Clock::time_point last_progress_ = Clock::now();
};

}  // namespace holdfast
