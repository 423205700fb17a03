#pragma once

// Where the time of steps goes, for callbacks that ask: spans of the thread of fit() and of each worker. While nothing
// is recorded, a span costs one comparison.

#include <chrono>
#include <cstddef>
#include <string_view>
#include <vector>

#include "holdfast/train/profile.h"

namespace holdfast {

class StepProfile {
 public:
  using Clock = std::chrono::steady_clock;

  // Both between steps. Spans that are open at the end end there.
  void begin(int workers);
  // By line, and within a line by their beginning; those around others come first.
  std::vector<ProfileSpan> end();
  bool is_on() const { return !lines_.empty(); }

  // A line belongs to one thread at a time. enter() ends the innermost span that enter() began, if it is as deep, and
  // begins one. What open() begins is around the spans that follow, up to close().
  void enter(int line, std::string_view what);
  void open(int line, std::string_view what);
  void close(int line);

  static constexpr int kFit = 0;  // the thread of fit()
  static int line_of_worker(int worker) { return worker + 1; }

 private:
  struct Line {
    std::vector<ProfileSpan> spans{};
    std::vector<std::size_t> around{};  // open() and not yet close()
    bool has_part = false;              // the last span was begun by enter() and has not ended
  };

  Line* line(int number);
  std::chrono::nanoseconds now() const { return Clock::now() - begun_; }
  void end_part(Line& line) const;

  Clock::time_point begun_{};
  std::vector<Line> lines_;  // empty: nothing is recorded
};

// A shard on the line of its worker.
class ProfiledShard {
 public:
  ProfiledShard(StepProfile& profile, int worker, int shard);
  ~ProfiledShard();
  ProfiledShard(const ProfiledShard&) = delete;
  ProfiledShard& operator=(const ProfiledShard&) = delete;

 private:
  StepProfile& profile_;
  const int line_;
};

}  // namespace holdfast
