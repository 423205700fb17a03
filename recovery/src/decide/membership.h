#pragma once

// Questions about the supervisor's state: which members can be in the next generation, with which ranks, and which
// device slot takes a further process. None of them changes the state.

#include <algorithm>
#include <optional>
#include <vector>

#include "decide/supervisor.h"

namespace holdfast::recovery {

// It has never been in a generation, and may still join one.
bool is_newcomer(const Member& member);
bool is_in_generation(const Member& member);
// A newcomer, or a member of a generation: it counts toward the number of replicas and spares.
bool is_able(const Member& member);
bool was_killed(const Member& member);
// Whether it waits with a whole state. A member that left its generation before the state had reached it has none.
bool brings_state(const Member& member);
// Whether it may still write, although no generation has it: it was killed after it had been in one, or its host is
// lost and not fenced. A newcomer has not written any file yet.
bool could_still_write(const Member& member);
// Whether its end need not be waited for any more.
bool is_fenced(const Member& member);

template <class Predicate>
bool has_any(const State& state, const Predicate& predicate) {
  return std::any_of(state.members.begin(), state.members.end(), predicate);
}

template <class Predicate>
int count(const State& state, const Predicate& predicate) {
  return static_cast<int>(std::count_if(state.members.begin(), state.members.end(), predicate));
}

bool has_stage(const State& state, Stage stage);
int count_stage(const State& state, Stage stage);
// Able members, and processes that are to be started.
int count_able(const State& state);

// Replicas that the next generation should have. Finished members need no successor.
int wanted(const State& state);
// Processes that should be ready to take the place of a replica.
int spares(const State& state);
// Replicas and spares that the run should have, and that neither exist nor are to be started.
int count_missing(const State& state);

// Whether the device slot is on a host that is not part of the run at present.
bool is_away(const State& state, int slot);
bool is_on_leaving_host(const State& state, const Member& member);
// The one of two hosts to go on without; empty where one of them has no process that a generation could have. It is the
// one with the higher number, so never the head's, unless that would give up the newest state.
std::optional<int> host_to_part_with(const State& state, const HostsCut& cut);
bool is_resting(const DeviceSlot& slot, Moment now);
bool is_on_probation(const DeviceSlot& slot, Moment now);
int count_usable_slots(const State& state, Moment now);
// Whether it was started to try its device slot, and has not shown yet that the slot is well.
bool is_on_trial(const State& state, const Member& member);
// The well device slot with the fewest processes; empty when each has its share. When no slot is well, one that is on
// probation.
std::optional<int> free_slot(const State& state, Moment now);
// A device slot on probation that no process tries yet.
std::optional<int> slot_to_try(const State& state, Moment now);
// The resting device slot without processes whose rest ends first.
std::optional<int> resting_slot(const State& state, Moment now);
// When the rest of the next device slot ends.
std::optional<Moment> next_end_of_a_rest(const State& state, Moment now);
// How long a device slot rests that is left out for the nth time.
std::chrono::milliseconds rest_of_a_slot(const SupervisorPolicy& policy, int times_left_out);

// Members of the running generation that have not left it, by rank.
std::vector<int> training_by_rank(const State& state);

// At most as many as wanted(): survivors in the order of their ranks, then ready members, the oldest first. If there
// are too many survivors, those with the newest state stay, and among these the lowest ranks.
std::vector<int> members_of_the_next(const State& state);
// The same members in rank order. The ranks of a host follow one another: hosts with survivors come first, by their
// numbers. Within that a survivor keeps its rank if the generation still has it, so that rank 0's background writer can
// go on.
std::vector<int> assigned_ranks(const State& state, const std::vector<int>& members);

}  // namespace holdfast::recovery
