// A rank belongs to one generation, while a process outlives generations. So the supervisor counts members, and gives
// out ranks only when a generation opens. See docs/decisions/recovery.md.

#include "decide/membership.h"

#include <cstddef>

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
  const int all = state.target + state.policy.recovery.spares;
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

bool was_killed(const Member& member) {
  return member.stage == Stage::failed || member.stage == Stage::leaving;
}

bool brings_state(const Member& member) {
  return member.stage == Stage::waiting && member.step >= 0;
}

bool could_still_write(const Member& member) {
  return was_killed(member) && member.rank >= 0;
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
  return std::max(1, state.target - state.finished);
}

// Not below zero: surplus processes are dismissed elsewhere.
int count_missing(const State& state) {
  return std::max(0, wanted(state) + state.policy.recovery.spares - count_able(state));
}

bool is_resting(const DeviceSlot& slot, Moment now) {
  return slot.rest_ends && now < *slot.rest_ends;
}

bool is_on_probation(const DeviceSlot& slot, Moment now) {
  return slot.rest_ends && now >= *slot.rest_ends;
}

int count_usable_slots(const State& state, Moment now) {
  return static_cast<int>(std::count_if(state.device_slots.begin(), state.device_slots.end(),
                                        [now](const DeviceSlot& slot) { return !is_resting(slot, now); }));
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
    if (state.device_slots.at(slot).rest_ends) continue;
    is_any_well = true;
    const int load = load_of(state, slot);
    // Among equals the lowest slot wins, so that a decision depends on nothing but the state.
    if (load >= fewest) continue;
    best = slot;
    fewest = load;
  }
  return is_any_well ? best : slot_to_try(state, now);
}

std::optional<int> slot_to_try(const State& state, Moment now) {
  for (int slot = 0; slot < state.policy.device_slots; ++slot) {
    const bool is_full = load_of(state, slot) >= share_of_a_slot(state);
    if (is_on_probation(state.device_slots.at(slot), now) && !is_full && !is_tried(state, slot)) {
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
    if (!is_resting(candidate, now) || load_of(state, slot) > 0) continue;
    if (longest && candidate.rest_ends >= state.device_slots.at(*longest).rest_ends) continue;
    longest = slot;
  }
  return longest;
}

std::optional<Moment> next_end_of_a_rest(const State& state, Moment now) {
  std::optional<Moment> next;
  for (const DeviceSlot& slot : state.device_slots) {
    if (is_resting(slot, now)) next = std::min(next.value_or(*slot.rest_ends), *slot.rest_ends);
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
  const std::vector<Member> ready = by_rank(state, Stage::ready);
  const auto size = static_cast<std::size_t>(wanted(state));
  if (members.size() > size) {
    // A stable sort keeps the order of ranks among equal steps.
    std::stable_sort(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.step > b.step; });
  }
  members.insert(members.end(), ready.begin(), ready.end());
  members.resize(std::min(members.size(), size));
  std::vector<int> ids;
  for (const Member& member : members) ids.push_back(member.id);
  return ids;
}

// Those that keep their ranks come first. The others fill what is left, in the given order.
std::vector<int> assigned_ranks(const State& state, const std::vector<int>& members) {
  std::vector<int> assigned(members.size(), -1);
  std::vector<int> others;
  for (const int id : members) {
    const Member& member = *find_member(state, id);
    const auto rank = static_cast<std::size_t>(member.rank);
    if (member.stage == Stage::waiting && rank < assigned.size()) {
      assigned[rank] = id;
    } else {
      others.push_back(id);
    }
  }
  for (std::size_t rank = 0, next = 0; rank < assigned.size(); ++rank) {
    if (assigned[rank] < 0) assigned[rank] = others[next++];
  }
  return assigned;
}

}  // namespace holdfast::recovery
