// The percentile is asked for at each look, and steps are recorded less often. So it is computed when it is asked for,
// and kept.

#include "detect/step_times.h"

#include <algorithm>

namespace holdfast::recovery {

void StepTimes::record(std::chrono::nanoseconds each, std::uint64_t steps) {
  if (steps == 0) return;
  records_[next_] = {each, steps};
  next_ = (next_ + 1) % kRecords;
  steps_ += steps;
  p99_.reset();
}

std::chrono::nanoseconds StepTimes::p99() const {
  if (!p99_) p99_ = find_p99();
  return *p99_;
}

std::chrono::nanoseconds StepTimes::find_p99() const {
  std::array<Record, kRecords> longest_first = records_;
  std::sort(longest_first.begin(), longest_first.end(),
            [](const Record& a, const Record& b) { return a.each > b.each; });
  std::uint64_t all = 0;
  // A record of several steps counts as many times.
  for (const Record& record : longest_first) all += record.steps;
  std::uint64_t longer = 0;
  for (const Record& record : longest_first) {
    longer += record.steps;
    if (longer > all / 100) return record.each;
  }
  return {};
}

}  // namespace holdfast::recovery
