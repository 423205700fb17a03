#pragma once

// When shards should be dealt otherwise, since a replica computes more slowly than the others or no longer does. Pure
// but for its memory of the last deal.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decide/restart_policy.h"
#include "decide/stragglers.h"

namespace holdfast::recovery {

// As sentences and the journal give times.
double milliseconds(std::chrono::nanoseconds time);

class ShardDealer {
 public:
  // Another deal costs a pause, so it has to be worth it, and not to come again and again.
  struct Options {
    double least_gain = 0.1;          // of the slowest rank's time to compute
    std::int64_t steps_between = 64;  // two deals, or
    Moment::duration time_between = std::chrono::seconds(60);
  };
  struct Deal {
    std::vector<int> shards{};                            // by rank
    std::vector<std::chrono::nanoseconds> round_times{};  // by rank, that it was made from
    std::string why{};
  };

  explicit ShardDealer(const Options& options) : options_(options) {}

  // The ranks compute other numbers of shards from here on.
  void dealt(std::int64_t step, Moment now) { last_ = Last{.step = step, .moment = now}; }

  // What would be better than what the ranks compute; nothing while a rank has not been watched for long enough.
  // `loads` and `standings` are those of the ranks, in rank order.
  std::optional<Deal> better_deal(std::span<const Load> loads, std::span<const Stragglers::Standing> standings,
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
