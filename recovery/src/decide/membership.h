#pragma once

// Who is there, who can be part of the next generation and with which rank, and where a further process has a place:
// questions about the supervisor's state, which they leave as it is.

#include <algorithm>
#include <optional>
#include <vector>

#include "decide/supervisor.h"

namespace holdfast::recovery {

// Could become part of a generation, but has not been in one yet.
bool is_newcomer(const Member& member);
bool is_in_generation(const Member& member);
// May be, or become, part of a generation.
bool is_able(const Member& member);
bool was_killed(const Member& member);
// One that left its generation before the state of the others had reached it brings none.
bool brings_state(const Member& member);
// It was killed, and was in a generation: newcomers have written nothing yet.
bool could_still_write(const Member& member);

template <class Predicate>
bool has_any(const State& state, const Predicate& predicate) {
  return std::any_of(state.members.begin(), state.members.end(), predicate);
}

bool has_stage(const State& state, Stage stage);
int count_stage(const State& state, Stage stage);
int count_in_generation(const State& state);
// Those that are able and those that are to be started.
int count_able(const State& state);

// Replicas that the next generation should have: members that have finished need no successor.
int wanted(const State& state);
// Those that the run should have and that are neither there nor to be started.
int count_missing(const State& state);

bool is_resting(const Place& place, Moment now);
bool is_on_probation(const Place& place, Moment now);
int count_usable_places(const State& state, Moment now);
// It was started to find out whether its place is well again, and has not shown that yet.
bool is_on_trial(const State& state, const Member& member);
// The place that is well and has the fewest processes; none where each has its share already. Where no place is well,
// one on probation.
std::optional<int> free_place(const State& state, Moment now);
// One on probation that nobody tries.
std::optional<int> place_to_try(const State& state, Moment now);
// Of those that rest and have no process, the one that has rested longest.
std::optional<int> resting_place(const State& state, Moment now);
// When the next place has rested enough.
std::optional<Moment> next_end_of_a_rest(const State& state, Moment now);
// Of a place that is left out for the nth time.
std::chrono::milliseconds rest_of_a_place(const SupervisorPolicy& policy, int times_left_out);

// Members of the running generation that have not left it, by rank.
std::vector<int> training_by_rank(const State& state);

// Survivors first, in the order of their ranks, then those that are ready, the oldest first; not more than are wanted.
// Of too many survivors those with the newest state stay, and of these the lowest ranks.
std::vector<int> members_of_the_next(const State& state);
// The same by rank. A survivor keeps its rank where there is such a rank still, so that little changes for its peers.
std::vector<int> dealt_ranks(const State& state, const std::vector<int>& members);

}  // namespace holdfast::recovery
