#pragma once

// When to take the next snapshot in memory: every so many steps, or so often that snapshots take a small share of the
// time.

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace holdfast {

class MemorySnapshotSchedule {
 public:
  using Clock = std::chrono::steady_clock;
  // The pause before the next snapshot is this many times as long as the last one kept training waiting.
  static constexpr int kIntervalsPerSnapshot = 200;
  // The same for the part of a snapshot that is done while training goes on.
  static constexpr int kIntervalsPerWrite = 10;

  // `every` steps; 0: so that snapshots take at most one part in kIntervalsPerSnapshot of the time.
  explicit MemorySnapshotSchedule(std::int64_t every) : every_(every) {}

  // `is_writing`: the last snapshot is still on its way.
  bool is_due(std::int64_t step, Clock::time_point now, bool is_writing = false) const {
    if (every_ > 0) return step % every_ == 0;
    return now >= next_ && !is_writing;
  }
  // The last snapshot kept training waiting for that time. Leave out work that is done only once: it would delay the
  // next snapshot by kIntervalsPerSnapshot times as much.
  void taken(Clock::time_point begin, Clock::time_point end) { next_ = end + kIntervalsPerSnapshot * (end - begin); }
  // The last snapshot was on its way for that time, while training went on.
  void written(Clock::time_point begin, Clock::time_point end) {
    next_ = std::max(next_, end + kIntervalsPerWrite * (end - begin));
  }

 private:
  std::int64_t every_;
  Clock::time_point next_{};
};

}  // namespace holdfast
