#pragma once

// Decides when shards should be assigned differently: a replica became slower than the others, or is no longer slow. It
// reads no clock; it only remembers the last assignment.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decide/restart_policy.h"
#include "decide/stragglers.h"

namespace holdfast::recovery {

// The unit of times in sentences and in the journal.
double milliseconds(std::chrono::nanoseconds time);

class ShardAssigner {
 public:
  // Another assignment costs a pause. So it must save enough time, and must not follow the last one too soon.
  struct Options {
    double least_gain = 0.1;          // part of the slowest rank's computing time that it must save
    std::int64_t steps_between = 64;  // between two assignments, or
    Moment::duration time_between = std::chrono::seconds(60);  // this much time
  };
  struct Proposal {
    std::vector<int> shards{};                            // by rank
    std::vector<std::chrono::nanoseconds> round_times{};  // by rank; the times on which it is based
    std::string why{};
  };

  explicit ShardAssigner(const Options& options) : options_(options) {}

  // Notes that the ranks compute other numbers of shards from here on.
  void assigned(std::int64_t step, Moment now) { last_ = Last{.step = step, .moment = now}; }

  // An assignment that is better than the present one; empty if no better one exists, or while a rank's window is not
  // full. `loads` and `speeds` are in rank order.
  std::optional<Proposal> better_assignment(std::span<const Load> loads, std::span<const Stragglers::Speed> speeds,
                                            std::int64_t step, Moment now) const;

 private:
  struct Last {
    std::int64_t step = 0;
    Moment moment{};
  };

  bool is_too_early(std::int64_t step, Moment now) const;

  Options options_;
  std::optional<Last> last_;
};

}  // namespace holdfast::recovery
