#pragma once

// When to take the next snapshot into memory: every so many steps, or as often as costs a small share of the time.

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace holdfast {

class MemorySnapshotSchedule {
 public:
  using Clock = std::chrono::steady_clock;
  // Of the time between two snapshots, where the interval is not given.
  static constexpr int kIntervalsPerSnapshot = 200;
  // Of what is done while training goes on, beside it.
  static constexpr int kIntervalsPerWrite = 10;

  // `every` steps; 0: so that snapshots take at most one part in kIntervalsPerSnapshot of the time.
  explicit MemorySnapshotSchedule(std::int64_t every) : every_(every) {}

  // `is_writing`: the last one is still on its way.
  bool is_due(std::int64_t step, Clock::time_point now, bool is_writing = false) const {
    if (every_ > 0) return step % every_ == 0;
    return now >= next_ && !is_writing;
  }
  // Without what is done once and for all: the next one would come kIntervalsPerSnapshot times as much later.
  void taken(Clock::time_point begin, Clock::time_point end) { next_ = end + kIntervalsPerSnapshot * (end - begin); }
  // Beside the training.
  void written(Clock::time_point begin, Clock::time_point end) {
    next_ = std::max(next_, end + kIntervalsPerWrite * (end - begin));
  }

 private:
  std::int64_t every_;
  Clock::time_point next_{};
};

}  // namespace holdfast
