// A slow replica is found by comparing medians, which one late step does not move.
// Two thresholds keep a replica near the limit from changing sides at each sample.
// See docs/decisions/shard-assignment.md.

#include "decide/stragglers.h"

#include <algorithm>

#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

// For an even count, the mean of the two middle values.
double median(std::vector<double> values) {
  const auto upper = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), upper, values.end());
  if (values.size() % 2 == 1) return *upper;
  return (*std::max_element(values.begin(), upper) + *upper) / 2;
}

// Without the own value: of two replicas, a slow one would otherwise move the median to its side.
double median_of_others(const std::vector<double>& values, std::size_t own) {
  std::vector<double> others = values;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(own));
  return median(std::move(others));
}

}  // namespace

// Rounded up, since a round with fewer shards takes as long as a full one.
int rounds_of(int shards, int at_once) {
  return (shards - 1) / at_once + 1;
}

bool Stragglers::look(std::span<const Load> loads, std::int64_t step) {
  bool has_changed = forget_all_but(loads);
  if (!is_time_for_a_sample(loads)) return has_changed;
  take_sample(loads, step);
  for (auto& [member, history] : histories_) has_changed = decide(history) || has_changed;
  return has_changed;
}

// That a straggler has left counts as a change, so that the journal gets lines of those that remain.
bool Stragglers::forget_all_but(std::span<const Load> loads) {
  const auto is_gone = [&](const auto& entry) {
    return std::none_of(loads.begin(), loads.end(), [&](const Load& load) { return load.member == entry.first; });
  };
  bool was_straggler = false;
  for (const auto& entry : histories_) was_straggler = was_straggler || (is_gone(entry) && entry.second.is_straggler);
  std::erase_if(histories_, is_gone);
  return was_straggler;
}

// A load that cannot be compared with the last one replaces it: the member computes other shards, or counts again from
// 0.
bool Stragglers::is_time_for_a_sample(std::span<const Load> loads) {
  bool is_time = loads.size() > 1;
  for (const Load& load : loads) {
    const auto [entry, is_new] = histories_.try_emplace(load.member, History{.last = load});
    Load& last = entry->second.last;
    const bool is_alike = load.shards == last.shards && load.at_once == last.at_once && load.steps >= last.steps &&
                          load.computing >= last.computing && load.waiting >= last.waiting;
    if (!is_alike) last = load;
    // All must have ended a step, so that their times are of the same stretch of the run.
    if (is_new || !is_alike || load.steps == last.steps) is_time = false;
  }
  return is_time;
}

void Stragglers::take_sample(std::span<const Load> loads, std::int64_t step) {
  std::vector<Sample> samples;
  std::vector<double> times;
  for (const Load& load : loads) {
    Load& last = histories_.at(load.member).last;
    const auto steps = static_cast<std::int64_t>(load.steps - last.steps);
    Sample sample{.step = step, .computing = load.computing - last.computing, .waiting = load.waiting - last.waiting};
    // At least one nanosecond, since ratios divide by it.
    sample.time_per_round =
        std::max(sample.computing / steps / rounds_of(load.shards, load.at_once), std::chrono::nanoseconds(1));
    times.push_back(static_cast<double>(sample.time_per_round.count()));
    samples.push_back(sample);
    last = load;
  }
  for (std::size_t i = 0; i < loads.size(); ++i) {
    // Within one sample, so that a step that is slow for all makes no straggler.
    samples[i].ratio = times[i] / median_of_others(times, i);
    std::deque<Sample>& window = histories_.at(loads[i].member).samples;
    window.push_back(samples[i]);
    if (window.size() > options_.window) window.pop_front();
  }
}

bool Stragglers::decide(History& history) const {
  if (history.samples.size() < options_.window) return false;
  const bool was_straggler = history.is_straggler;
  history.is_straggler = score_of(history) >= (was_straggler ? options_.ends_at : options_.begins_at);
  if (history.is_straggler == was_straggler) return false;
  history.since_step = history.is_straggler ? first_slow_step(history) : -1;
  return true;
}

double Stragglers::score_of(const History& history) const {
  if (history.samples.empty()) return 1;
  std::vector<double> ratios;
  for (const Sample& sample : history.samples) ratios.push_back(sample.ratio);
  return median(std::move(ratios));
}

// A user wants to know when it began. When it was certain is a window later.
std::int64_t Stragglers::first_slow_step(const History& history) const {
  const auto newest_good = std::find_if(history.samples.rbegin(), history.samples.rend(),
                                        [&](const Sample& sample) { return sample.ratio < options_.ends_at; });
  return newest_good == history.samples.rbegin() ? newest_good->step : std::prev(newest_good)->step;
}

std::vector<Stragglers::Speed> Stragglers::speeds() const {
  std::vector<Speed> speeds;
  for (const auto& [member, history] : histories_) {
    Speed speed{.member = member,
                .score = score_of(history),
                .is_straggler = history.is_straggler,
                .since_step = history.since_step,
                .is_settled = history.samples.size() == options_.window};
    std::vector<double> times;
    std::chrono::duration<double> computing{};
    std::chrono::duration<double> waiting{};
    for (const Sample& sample : history.samples) {
      times.push_back(static_cast<double>(sample.time_per_round.count()));
      computing += sample.computing;
      waiting += sample.waiting;
    }
    if (!times.empty()) {
      speed.time_per_round = std::chrono::nanoseconds(static_cast<std::int64_t>(median(std::move(times))));
    }
    if (computing + waiting > computing.zero()) speed.waiting_share = waiting / (computing + waiting);
    speeds.push_back(speed);
  }
  return speeds;
}

// Greedy: each shard goes to the rank that would be done with it first. A rank's time only grows with its shards, so no
// other assignment ends earlier.
std::vector<int> balanced_shards(int shards, std::span<const Pace> paces) {
  HOLDFAST_ASSERT(!paces.empty() && shards >= static_cast<int>(paces.size()));
  std::vector<int> counts(paces.size(), 1);
  for (int assigned = static_cast<int>(paces.size()); assigned < shards; ++assigned) {
    const auto end_with_one_more = [&](std::size_t rank) {
      return paces[rank].time_per_round * rounds_of(counts[rank] + 1, paces[rank].at_once);
    };
    std::size_t best = 0;
    for (std::size_t rank = 1; rank < paces.size(); ++rank) {
      // Among equals the lowest rank gets the shard, so the assignment depends on the paces alone.
      if (end_with_one_more(rank) < end_with_one_more(best)) best = rank;
    }
    ++counts[best];
  }
  return counts;
}

}  // namespace holdfast::recovery
