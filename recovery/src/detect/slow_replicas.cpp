// Only workers know how many shards they compute, and how many at the same time, so they report it at the beginning of
// each generation. A program that reports nothing is left alone. See docs/decisions/shard-assignment.md.

#include "detect/slow_replicas.h"

#include <algorithm>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "channel/messages.h"

namespace holdfast::recovery {
namespace {

std::string describe(const Stragglers::Speed& speed) {
  return fmt::format("it computes {:.1f} times as long as the others", speed.score);
}

nlohmann::json milliseconds_of_each(const std::vector<std::chrono::nanoseconds>& times) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto time : times) list.push_back(milliseconds(time));
  return list;
}

}  // namespace

void SlowReplicas::generation_opened(const Action& action, std::int64_t step, Moment now) {
  generation_ = action.generation;
  members_ = action.members;
  // Reported anew in each generation, since the assignment may have changed.
  work_.clear();
  has_proposed_ = false;
  // A line for each generation without a change would only fill the journal.
  if (action.shards == shards_) return;
  shards_ = action.shards;
  assigner_.assigned(step, now);
  write_down_assignment(action);
}

void SlowReplicas::write_down_assignment(const Action& action) {
  nlohmann::json line{{"event", "dealt"}, {"generation", action.generation}, {"is_even", action.shards.empty()}};
  if (!action.shards.empty()) line["shards"] = action.shards;
  // The supervisor may have dropped the proposal. Its reason does not belong to other shards.
  if (proposal_ && proposal_->shards == action.shards) {
    line["milliseconds_per_round"] = milliseconds_of_each(proposal_->round_times);
    line["why"] = proposal_->why;
  }
  journal_.append(std::move(line));
}

void SlowReplicas::work_reported(int member, int generation, const ReplicaWork& work) {
  check_work(work);
  // A report that was under way when its generation ended may describe another assignment.
  if (generation == generation_) work_.insert_or_assign(member, work);
}

std::optional<ReplicaWork> SlowReplicas::work_of(int member) const {
  const auto found = work_.find(member);
  return found == work_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<Event> SlowReplicas::look(const std::vector<Load>& loads, std::int64_t step, Moment now) {
  std::vector<Event> events;
  // Only when a replica has changed sides: lines for each look would fill the journal.
  if (stragglers_.look(loads, step)) {
    write_down(step);
    events = slow_ones();
  }
  if (std::optional<Event> proposal = propose_assignment(loads, step, now)) events.push_back(std::move(*proposal));
  return events;
}

// All members have a line, since a score is relative to the others.
void SlowReplicas::write_down(std::int64_t step) {
  for (const Stragglers::Speed& speed : stragglers_.speeds()) {
    const auto rank = std::find(members_.begin(), members_.end(), speed.member);
    journal_.append({{"event", "straggler"},
                     {"generation", generation_},
                     {"member", speed.member},
                     {"rank", std::distance(members_.begin(), rank)},
                     {"step", step},
                     {"is_straggler", speed.is_straggler},
                     {"score", speed.score},
                     {"since_step", speed.since_step},
                     {"milliseconds_per_round", milliseconds(speed.time_per_round)},
                     {"waiting_share", speed.waiting_share}});
  }
}

std::vector<Event> SlowReplicas::slow_ones() const {
  std::vector<Event> events;
  if (when_slow_ != WhenSlow::replace) return events;
  for (const Stragglers::Speed& speed : stragglers_.speeds()) {
    if (!speed.is_straggler) continue;
    events.push_back({.kind = EventKind::slow, .member = speed.member, .what = describe(speed)});
  }
  return events;
}

std::optional<Event> SlowReplicas::propose_assignment(const std::vector<Load>& loads, std::int64_t step, Moment now) {
  if (when_slow_ != WhenSlow::deal || has_proposed_) return std::nullopt;
  const std::vector<Stragglers::Speed> by_member = stragglers_.speeds();
  std::vector<Stragglers::Speed> by_rank;
  for (const Load& load : loads) {
    const auto found = std::find_if(by_member.begin(), by_member.end(),
                                    [&](const Stragglers::Speed& s) { return s.member == load.member; });
    // A member without samples has no speed yet.
    if (found == by_member.end()) return std::nullopt;
    by_rank.push_back(*found);
  }
  std::optional<ShardAssigner::Proposal> assignment = assigner_.better_assignment(loads, by_rank, step, now);
  if (!assignment) return std::nullopt;
  // Once in a generation. Only the next generation shows what the assignment has changed.
  has_proposed_ = true;
  proposal_ = std::move(assignment);
  return Event{.kind = EventKind::assignment_proposed,
               .generation = generation_,
               .what = proposal_->why,
               .shards = proposal_->shards};
}

}  // namespace holdfast::recovery
