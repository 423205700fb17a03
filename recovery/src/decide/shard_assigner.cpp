// Another assignment costs a regroup, so it must be worth that. All windows have to be full, a replica is or was slow,
// and the gain is large enough. See docs/decisions/shard-assignment.md.

#include "decide/shard_assigner.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

// The slowest rank decides, since the others wait for it in each step.
std::chrono::nanoseconds time_of(const std::vector<int>& shards, std::span<const Pace> paces) {
  std::chrono::nanoseconds longest{};
  for (std::size_t rank = 0; rank < paces.size(); ++rank) {
    longest = std::max(longest, paces[rank].time_per_round * rounds_of(shards[rank], paces[rank].at_once));
  }
  return longest;
}

std::string reason(const std::vector<int>& before, const std::vector<int>& after, std::span<const Pace> paces) {
  return fmt::format("with {} shards instead of {}, the slowest replica computes for {:.3g} ms instead of {:.3g} ms",
                     fmt::join(after, ", "), fmt::join(before, ", "), milliseconds(time_of(after, paces)),
                     milliseconds(time_of(before, paces)));
}

}  // namespace

double milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

// Enough steps or enough time will do. If both were needed, long steps would keep a bad assignment for an hour.
bool ShardAssigner::is_too_early(std::int64_t step, Moment now) const {
  return last_ && step - last_->step < options_.steps_between && now - last_->moment < options_.time_between;
}

std::optional<ShardAssigner::Proposal> ShardAssigner::better_assignment(std::span<const Load> loads,
                                                                        std::span<const Stragglers::Speed> speeds,
                                                                        std::int64_t step, Moment now) const {
  HOLDFAST_ASSERT(loads.size() == speeds.size());
  // A replica that is alone computes all shards in any case.
  if (loads.size() < 2 || is_too_early(step, now)) return std::nullopt;
  std::vector<int> current;
  std::vector<Pace> paces;
  Proposal assignment;
  bool has_straggler = false;
  for (std::size_t rank = 0; rank < loads.size(); ++rank) {
    // A window that is not full may have a single slow step.
    if (!speeds[rank].is_settled) return std::nullopt;
    has_straggler = has_straggler || speeds[rank].is_straggler;
    current.push_back(loads[rank].shards);
    paces.push_back({.time_per_round = speeds[rank].time_per_round, .at_once = loads[rank].at_once});
    assignment.round_times.push_back(speeds[rank].time_per_round);
  }
  const auto [fewest, most] = std::minmax_element(current.begin(), current.end());
  const bool is_even = *most - *fewest <= 1;
  // There is nothing to improve, and no earlier assignment to undo.
  if (is_even && !has_straggler) return std::nullopt;
  assignment.shards = balanced_shards(std::accumulate(current.begin(), current.end(), 0), paces);
  // A smaller gain does not pay for the pause of another generation.
  const double least = 1 - options_.least_gain;
  if (milliseconds(time_of(assignment.shards, paces)) > least * milliseconds(time_of(current, paces)))
    return std::nullopt;
  assignment.why = reason(current, assignment.shards, paces);
  return assignment;
}

}  // namespace holdfast::recovery
