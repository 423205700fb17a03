// Generations give ranks, and a process has an environment before it is in one. So what its variables say is a plan:
// each host has its places for replicas, and what starts there beyond them is a spare, or takes the place of a replica
// of another host. Processes start in any order, since hosts join when they can. docs/decisions/holdfast-run.md

#include "watchdog/intended_ranks.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace holdfast::recovery {
namespace {

int lowest_not_in(const std::set<int>& taken, int first = 0) {
  int rank = first;
  while (taken.contains(rank)) ++rank;
  return rank;
}

int count_below(const std::set<int>& taken, int limit) {
  return static_cast<int>(std::distance(taken.begin(), taken.lower_bound(limit)));
}

// The run begins with all its hosts, so one that is lost before has still to come.
bool is_yet_to_come(const State& state, const Host& host) {
  return host.stage == Host::Stage::awaited || (host.stage == Host::Stage::lost && state.generation < 0);
}

// Its ranks are free again, and the process that is started next may be the one to take them.
bool gives_ranks_up(const Member& member) {
  return member.stage == Stage::failed || member.stage == Stage::unreachable || member.stage == Stage::leaving;
}

}  // namespace

int replicas_planned_on(int host, int hosts, int replicas) {
  return replicas / hosts + (host < replicas % hosts ? 1 : 0);
}

// An environment stays, whatever rank a generation gives. So what was said there counts.
std::set<int> IntendedRanks::local_ranks_of(const State& state, int host, int except) const {
  std::set<int> taken;
  for (const Member& member : state.members) {
    if (member.id == except || member.host != host || gives_ranks_up(member)) continue;
    const auto intended = by_member_.find(member.id);
    if (intended != by_member_.end()) taken.insert(intended->second.local);
  }
  return taken;
}

// How many processes are yet to start for the replicas that are planned on a host.
int IntendedRanks::count_to_come(const State& state, int host, int except) const {
  const int planned = replicas_planned_on(host, state.policy.hosts, state.target);
  if (is_yet_to_come(state, state.hosts.at(static_cast<std::size_t>(host)))) return planned;
  const auto members = std::count_if(state.members.begin(), state.members.end(), [&](const Member& member) {
    return member.id != except && member.host == host && !gives_ranks_up(member) && !by_member_.contains(member.id);
  });
  const auto pending =
      std::count_if(state.pending_starts.begin(), state.pending_starts.end(),
                    [&](const PendingStart& start) { return state.policy.host_of(start.device_slot) == host; });
  const int free = planned - count_below(local_ranks_of(state, host, except), planned);
  return std::min(free, static_cast<int>(members + pending));
}

IntendedRank IntendedRanks::choose(const State& state, int member) {
  const Member* const chosen = find_member(state, member);
  const int host = chosen == nullptr ? 0 : chosen->host;
  const int planned = replicas_planned_on(host, state.policy.hosts, state.target);
  std::set<int> taken;
  for (const Member& other : state.members) {
    if (other.id == member || gives_ranks_up(other)) continue;
    const auto intended = by_member_.find(other.id);
    if (other.rank >= 0) {
      taken.insert(other.rank);
    } else if (intended != by_member_.end()) {
      taken.insert(intended->second.rank);
    }
  }
  const std::set<int> taken_on_host = local_ranks_of(state, host, member);
  // Otherwise a spare would take itself for a replica, and a replica of a host that joins later for a spare.
  int left_to_others = 0;
  for (int other = 0; other < static_cast<int>(state.hosts.size()); ++other) {
    if (other != host) left_to_others += count_to_come(state, other, member);
  }
  const int free = state.target - count_below(taken, state.target);
  // A spare may have taken the place of a replica that failed here. Then this process is the spare.
  const bool has_place = count_below(taken_on_host, planned) < planned;
  const bool is_replica = free > (has_place ? 0 : left_to_others);
  return by_member_[member] = {.rank = lowest_not_in(taken, is_replica ? 0 : state.target),
                               .local = lowest_not_in(taken_on_host, is_replica ? 0 : planned)};
}

std::optional<int> IntendedRanks::rank_of(int member) const {
  const auto found = by_member_.find(member);
  return found == by_member_.end() ? std::nullopt : std::optional(found->second.rank);
}

void IntendedRanks::forget_gone(const State& state) {
  std::erase_if(by_member_, [&](const auto& entry) { return find_member(state, entry.first) == nullptr; });
}

}  // namespace holdfast::recovery
