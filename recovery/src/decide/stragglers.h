#pragma once

// Finds replicas that compute more slowly than the others, from the times that they count. balanced_shards() assigns
// shards so that the slowest replica delays the others least. It reads no clock; it only remembers earlier samples.
// See docs/decisions/shard-assignment.md.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

namespace holdfast::recovery {

// What one member has done since its process began.
struct Load {
  int member = 0;   // a process, numbered for the whole run
  int shards = 1;   // that it computes in a step
  int at_once = 1;  // shards that it computes at the same time
  std::uint64_t steps = 0;
  std::chrono::nanoseconds computing{};
  std::chrono::nanoseconds waiting{};  // for its peers
};

class Stragglers {
 public:
  struct Options {
    double begins_at = 1.5;   // the score at which a member becomes a straggler
    double ends_at = 1.2;     // the score below which it no longer is one
    std::size_t window = 32;  // samples
  };

  // How fast a member was over the latest `window` samples.
  struct Speed {
    int member = 0;
    // The median of its time for a round, relative to the median of the others: 2 is half as fast. 1 without samples.
    double score = 1;
    std::chrono::nanoseconds time_per_round{};  // median; one round computes `at_once` shards
    double waiting_share = 0;                   // of the time that it computes or waits
    bool is_straggler = false;
    std::int64_t since_step = -1;  // the first slow step of a straggler
    bool is_settled = false;       // the window is full
  };

  explicit Stragglers(const Options& options) : options_(options) {}

  // Takes a sample once all members have ended a step since the last sample. `step` is the step of the run. A member
  // that is not among the loads is forgotten. A member without peers is never slow. Returns whether a member became a
  // straggler or ceased to be one, which takes a full window of samples.
  bool look(std::span<const Load> loads, std::int64_t step);

  // In the order of member ids.
  std::vector<Speed> speeds() const;

 private:
  struct Sample {
    std::int64_t step = 0;
    double ratio = 1;  // its time for a round, relative to the median of the others
    std::chrono::nanoseconds time_per_round{};
    std::chrono::nanoseconds computing{};
    std::chrono::nanoseconds waiting{};
  };
  struct History {
    Load last{};
    std::deque<Sample> samples{};
    bool is_straggler = false;
    std::int64_t since_step = -1;
  };

  bool forget_all_but(std::span<const Load> loads);
  bool is_time_for_a_sample(std::span<const Load> loads);
  void take_sample(std::span<const Load> loads, std::int64_t step);
  bool decide(History& history) const;
  double score_of(const History& history) const;
  std::int64_t first_slow_step(const History& history) const;

  Options options_;
  std::map<int, History> histories_;  // by member
};

// How fast one rank is.
struct Pace {
  std::chrono::nanoseconds time_per_round{};
  int at_once = 1;  // shards in a round
};

// How many rounds a rank needs for `shards` shards when it computes `at_once` of them at the same time.
int rounds_of(int shards, int at_once);

// How many of the shards each rank should compute, in rank order, so that the last rank ends as early as possible. Each
// rank gets at least one shard. Asserts that there is a rank, and a shard for each.
std::vector<int> balanced_shards(int shards, std::span<const Pace> paces);

}  // namespace holdfast::recovery
