#pragma once

// What happens to savepoints, as lines of the run's journal, and in the log where somebody should know.

#include <chrono>
#include <string>

#include "holdfast/train/savepoint.h"
#include "train/context/place.h"

namespace holdfast {

class SavepointJournal {
 public:
  // `supervision` must outlive it.
  explicit SavepointJournal(Supervision& supervision) : supervision_(supervision) {}

  // Any thread, but progress by one at a time. Of progress there is a line every ten seconds.
  void note(const SavepointEvent& event);

 private:
  using Clock = std::chrono::steady_clock;

  Supervision& supervision_;
  Clock::time_point last_progress_ = Clock::now();
};

}  // namespace holdfast
