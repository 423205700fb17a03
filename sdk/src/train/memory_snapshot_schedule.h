#pragma once

// When to take the next snapshot into memory: every so many steps, or as often as costs a small share of the time.

#include <chrono>
#include <cstdint>

namespace holdfast {

class MemorySnapshotSchedule {
 public:
  using Clock = std::chrono::steady_clock;
  // Of the time between two snapshots, where the interval is not given.
  static constexpr int kIntervalsPerSnapshot = 200;

  // `every` steps; 0: so that snapshots take at most one part in kIntervalsPerSnapshot of the time.
  explicit MemorySnapshotSchedule(std::int64_t every) : every_(every) {}

  bool is_due(std::int64_t step, Clock::time_point now) const {
    if (every_ > 0) return step % every_ == 0;
    return now >= next_;
  }
  void taken(Clock::time_point begin, Clock::time_point end) { next_ = end + kIntervalsPerSnapshot * (end - begin); }

 private:
  std::int64_t every_;
  Clock::time_point next_{};
};

}  // namespace holdfast
