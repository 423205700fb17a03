// A rank belongs to one generation, while a process outlives generations. So the supervisor counts members, and gives
// out ranks only when a generation opens. See docs/decisions/recovery.md.

#include "decide/membership.h"

#include <cstddef>
#include <map>
#include <set>

namespace holdfast::recovery {
namespace {

// Pending starts count as well. Otherwise several starts at one time would go to the same slot.
int load_of(const State& state, int slot) {
  const int members = count(state, [&](const Member& member) { return member.device_slot == slot && is_able(member); });
  const auto pending = std::count_if(state.pending_starts.begin(), state.pending_starts.end(),
                                     [&](const PendingStart& start) { return start.device_slot == slot; });
  return members + static_cast<int>(pending);
}

// The most processes on one device slot when all replicas and spares are spread evenly over all slots.
int share_of_a_slot(const State& state) {
  const int all = state.target + spares(state);
  return (all + state.policy.device_slots - 1) / state.policy.device_slots;
}

// One process at a time tries a device slot, because a broken device would fail each of them.
bool is_tried(const State& state, int slot) {
  const bool has_start = std::any_of(state.pending_starts.begin(), state.pending_starts.end(),
                                     [slot](const PendingStart& start) { return start.device_slot == slot; });
  return has_start || has_any(state, [&](const Member& member) {
           return member.device_slot == slot && is_able(member) && is_on_trial(state, member);
         });
}

// Those that keep their ranks come first. The others fill what is left, in the given order. The host's first rank is
// `first`.
std::vector<int> ranks_of_a_host(const State& state, const std::vector<int>& members, std::size_t first) {
  std::vector<int> assigned(members.size(), -1);
  std::vector<int> others;
  for (const int id : members) {
    const Member& member = *find_member(state, id);
    // Wraps around below `first`, and is too large then.
    const std::size_t place = static_cast<std::size_t>(member.rank) - first;
    if (member.stage == Stage::waiting && place < assigned.size()) {
      assigned[place] = id;
    } else {
      others.push_back(id);
    }
  }
  for (std::size_t place = 0, next = 0; place < assigned.size(); ++place) {
    if (assigned[place] < 0) assigned[place] = others[next++];
  }
  return assigned;
}

std::vector<Member> by_rank(const State& state, Stage stage) {
  std::vector<Member> members;
  for (const Member& member : state.members) {
    if (member.stage == stage) members.push_back(member);
  }
  // Stable, so that members without a rank stay in the order in which they were started.
  std::stable_sort(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.rank < b.rank; });
  return members;
}

}  // namespace

bool is_newcomer(const Member& member) {
  return member.stage == Stage::starting || member.stage == Stage::ready;
}

bool is_in_generation(const Member& member) {
  return member.stage == Stage::training || member.stage == Stage::waiting;
}

bool is_able(const Member& member) {
  return is_newcomer(member) || is_in_generation(member);
}

// SIGKILL is on its way to a failed and to a leaving process. Only an exit shows that the process is gone.
bool was_killed(const Member& member) {
  return member.stage == Stage::failed || member.stage == Stage::leaving;
}

bool brings_state(const Member& member) {
  return member.stage == Stage::waiting && member.step >= 0;
}

bool could_still_write(const Member& member) {
  const bool is_out_of_sight = member.stage == Stage::unreachable && !member.is_fenced;
  return (was_killed(member) || is_out_of_sight) && member.rank >= 0;
}

bool is_fenced(const Member& member) {
  return member.stage == Stage::unreachable && member.is_fenced;
}

const Member* find_member(const State& state, int id) {
  const auto found =
      std::find_if(state.members.begin(), state.members.end(), [id](const Member& member) { return member.id == id; });
  return found == state.members.end() ? nullptr : &*found;
}

bool has_stage(const State& state, Stage stage) {
  return count_stage(state, stage) > 0;
}

int count_stage(const State& state, Stage stage) {
  return count(state, [stage](const Member& member) { return member.stage == stage; });
}

int count_able(const State& state) {
  return count(state, is_able) + static_cast<int>(state.pending_starts.size());
}

int wanted(const State& state) {
  // Not below one: after a request for fewer replicas, more may have finished than are wanted.
  return std::max(1, state.target - state.finished);
}

int spares(const State& state) {
  return state.policy.recovery.spares;
}

// Not below zero: surplus processes are dismissed elsewhere.
int count_missing(const State& state) {
  return std::max(0, wanted(state) + spares(state) - count_able(state));
}

bool is_away(const State& state, int slot) {
  return state.hosts.at(static_cast<std::size_t>(state.policy.host_of(slot))).stage != Host::Stage::there;
}

bool is_on_leaving_host(const State& state, const Member& member) {
  return state.hosts.at(static_cast<std::size_t>(member.host)).stage == Host::Stage::leaving;
}

std::optional<int> host_to_part_with(const State& state, const HostsCut& cut) {
  const auto has_any_on = [&state](int host) {
    return has_any(state, [host](const Member& member) { return member.host == host && is_able(member); });
  };
  if (!has_any_on(cut.one) || !has_any_on(cut.other)) return std::nullopt;
  std::int64_t newest_there = -1;
  std::int64_t newest_elsewhere = -1;
  for (const Member& member : state.members) {
    if (!is_able(member)) continue;
    std::int64_t& newest = member.host == cut.other ? newest_there : newest_elsewhere;
    newest = std::max(newest, member.step);
  }
  return newest_there > newest_elsewhere ? cut.one : cut.other;
}

// The end of a rest stays set after it has passed, until a process has trained a step on the slot.
bool is_resting(const DeviceSlot& slot, Moment now) {
  return slot.rest_ends && now < *slot.rest_ends;
}

bool is_on_probation(const DeviceSlot& slot, Moment now) {
  return slot.rest_ends && now >= *slot.rest_ends;
}

int count_usable_slots(const State& state, Moment now) {
  int usable = 0;
  for (int slot = 0; slot < state.policy.device_slots; ++slot) {
    if (!is_away(state, slot) && !is_resting(state.device_slots.at(slot), now)) ++usable;
  }
  return usable;
}

// Numbers of members rise, so those from first_on_trial on were started after the slot was left out.
bool is_on_trial(const State& state, const Member& member) {
  const DeviceSlot& slot = state.device_slots.at(member.device_slot);
  return slot.rest_ends && member.id >= slot.first_on_trial;
}

std::optional<int> free_slot(const State& state, Moment now) {
  std::optional<int> best;
  bool is_any_well = false;
  int fewest = share_of_a_slot(state);
  for (int slot = 0; slot < state.policy.device_slots; ++slot) {
    // A slot whose rest is over is skipped as well: slot_to_try() sends a single process there.
    if (is_away(state, slot) || state.device_slots.at(slot).rest_ends) continue;
    is_any_well = true;
    const int load = load_of(state, slot);
    // Among equals the lowest slot wins, so that a decision depends on nothing but the state.
    if (load >= fewest) continue;
    best = slot;
    fewest = load;
  }
  // Where no slot is well, one that has rested is as good as any.
  return is_any_well ? best : slot_to_try(state, now);
}

std::optional<int> slot_to_try(const State& state, Moment now) {
  for (int slot = 0; slot < state.policy.device_slots; ++slot) {
    const bool is_full = load_of(state, slot) >= share_of_a_slot(state);
    const bool is_due = !is_away(state, slot) && is_on_probation(state.device_slots.at(slot), now);
    if (is_due && !is_full && !is_tried(state, slot)) {
      return slot;
    }
  }
  return std::nullopt;
}

// The one whose rest ends first would be tried first in any case.
std::optional<int> resting_slot(const State& state, Moment now) {
  std::optional<int> longest;
  for (int slot = 0; slot < state.policy.device_slots; ++slot) {
    const DeviceSlot& candidate = state.device_slots.at(slot);
    if (is_away(state, slot) || !is_resting(candidate, now) || load_of(state, slot) > 0) continue;
    if (longest && candidate.rest_ends >= state.device_slots.at(*longest).rest_ends) continue;
    longest = slot;
  }
  return longest;
}

std::optional<Moment> next_end_of_a_rest(const State& state, Moment now) {
  std::optional<Moment> next;
  for (int slot = 0; slot < state.policy.device_slots; ++slot) {
    const DeviceSlot& candidate = state.device_slots.at(slot);
    if (is_away(state, slot) || !is_resting(candidate, now)) continue;
    next = std::min(next.value_or(*candidate.rest_ends), *candidate.rest_ends);
  }
  return next;
}

std::chrono::milliseconds rest_of_a_slot(const SupervisorPolicy& policy, int times_left_out) {
  std::chrono::milliseconds rest = policy.recovery.place_rest;
  // Doubled step by step: a power of two would overflow after many rests.
  for (int i = 1; i < times_left_out && rest < policy.longest_slot_rest; ++i) rest *= 2;
  return std::min(rest, std::max(policy.recovery.place_rest, policy.longest_slot_rest));
}

std::vector<int> training_by_rank(const State& state) {
  std::vector<int> ids;
  for (const Member& member : by_rank(state, Stage::training)) ids.push_back(member.id);
  return ids;
}

std::vector<int> members_of_the_next(const State& state) {
  std::vector<Member> members = by_rank(state, Stage::waiting);
  std::vector<Member> ready = by_rank(state, Stage::ready);
  const auto leaves = [&state](const Member& member) { return is_on_leaving_host(state, member); };
  // A host that leaves keeps its members in one more generation where they alone have the state.
  if (!std::all_of(members.begin(), members.end(), leaves)) std::erase_if(members, leaves);
  std::erase_if(ready, leaves);
  const auto size = static_cast<std::size_t>(wanted(state));
  if (members.size() > size) {
    // A stable sort keeps the order of ranks among equal steps.
    std::stable_sort(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.step > b.step; });
  }
  // Those of a host that is back have states, and nobody else may have one.
  if (members.size() + ready.size() > size) {
    std::stable_sort(ready.begin(), ready.end(), [](const Member& a, const Member& b) { return a.step > b.step; });
  }
  members.insert(members.end(), ready.begin(), ready.end());
  members.resize(std::min(members.size(), size));
  std::vector<int> ids;
  for (const Member& member : members) ids.push_back(member.id);
  return ids;
}

std::vector<int> assigned_ranks(const State& state, const std::vector<int>& members) {
  // The ranks of a host follow one another, because gradients are added within a host before hosts exchange sums.
  std::map<int, std::vector<int>> by_host;
  std::set<int> with_survivor;
  for (const int id : members) {
    const Member& member = *find_member(state, id);
    by_host[member.host].push_back(id);
    if (member.stage == Stage::waiting) with_survivor.insert(member.host);
  }
  std::vector<int> assigned;
  // Rank 0 has a survivor, which brings the state.
  for (const bool has_survivor : {true, false}) {
    for (const auto& [host, of_host] : by_host) {
      if (with_survivor.contains(host) != has_survivor) continue;
      const std::vector<int> ranks = ranks_of_a_host(state, of_host, assigned.size());
      assigned.insert(assigned.end(), ranks.begin(), ranks.end());
    }
  }
  return assigned;
}

}  // namespace holdfast::recovery
