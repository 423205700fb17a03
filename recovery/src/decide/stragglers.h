#pragma once

// Tells which replicas compute more slowly than the others, from the times that they count, and how to deal shards so
// that the slowest holds the others up least. Pure but for its memory of earlier looks.

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
  int at_once = 1;  // of these
  std::uint64_t steps = 0;
  std::chrono::nanoseconds computing{};
  std::chrono::nanoseconds waiting{};  // for peers
};

class Stragglers {
 public:
  struct Options {
    double begins_at = 1.5;  // the score at which a member becomes a straggler
    double ends_at = 1.2;    // and below which it is none any more
    std::size_t window = 32;
  };

  // How a member stands over the latest `window` samples.
  struct Standing {
    int member = 0;
    // The median of its time for a shard, over the median of the others': 2 is half as fast. 1 without samples.
    double score = 1;
    std::chrono::nanoseconds time_per_round{};  // median; as many shards as it computes at once take one round
    double waiting_share = 0;                   // of its computing and waiting
    bool is_straggler = false;
    std::int64_t since_step = -1;  // of a straggler: the first of the slow steps
    bool is_settled = false;       // all this is of a whole window
  };

  explicit Stragglers(const Options& options) : options_(options) {}

  // Takes a sample once all members have ended a step since the sample before; `step` is the run's. A member that is
  // not among the loads is forgotten. Without peers nobody is slow. True when a member became a straggler or ceased to
  // be one, which takes a whole window of samples.
  bool look(std::span<const Load> loads, std::int64_t step);

  // By member.
  std::vector<Standing> standings() const;

 private:
  struct Sample {
    std::int64_t step = 0;
    double ratio = 1;  // of the time for a round to the median of the others'
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

// How often a rank that computes `at_once` shards at a time has to begin, for so many.
int rounds_of(int shards, int at_once);

// How many of `shards` each rank should compute, in rank order, so that the slowest is done soonest: at least one each,
// as evenly as that allows. Asserts that there is a shard for each rank, and a rank.
std::vector<int> balanced_shards(int shards, std::span<const Pace> paces);

}  // namespace holdfast::recovery
