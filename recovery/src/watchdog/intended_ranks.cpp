#include "watchdog/intended_ranks.h"

#include <set>

namespace holdfast::recovery {
namespace {

int lowest_not_in(const std::set<int>& taken) {
  int rank = 0;
  while (taken.contains(rank)) ++rank;
  return rank;
}

// Its ranks are free again, and the process that is started next may be the one to take them.
bool gives_ranks_up(const Member& member) {
  return member.stage == Stage::failed || member.stage == Stage::unreachable || member.stage == Stage::leaving;
}

}  // namespace

IntendedRank IntendedRanks::choose(const State& state, int member) {
  const Member* const chosen = find_member(state, member);
  std::set<int> taken, taken_on_host;
  for (const Member& other : state.members) {
    if (other.id == member || gives_ranks_up(other)) continue;
    const auto intended = by_member_.find(other.id);
    if (other.rank >= 0) {
      taken.insert(other.rank);
    } else if (intended != by_member_.end()) {
      taken.insert(intended->second.rank);
    }
    // An environment stays, whatever rank a generation gives. So what was said there counts.
    const bool is_on_host = chosen != nullptr && other.host == chosen->host;
    if (is_on_host && intended != by_member_.end()) taken_on_host.insert(intended->second.local);
  }
  return by_member_[member] = {.rank = lowest_not_in(taken), .local = lowest_not_in(taken_on_host)};
}

std::optional<int> IntendedRanks::rank_of(int member) const {
  const auto found = by_member_.find(member);
  return found == by_member_.end() ? std::nullopt : std::optional(found->second.rank);
}

void IntendedRanks::forget_gone(const State& state) {
  std::erase_if(by_member_, [&](const auto& entry) { return find_member(state, entry.first) == nullptr; });
}

}  // namespace holdfast::recovery
