#include "membership.h"

#include <cstddef>

namespace holdfast::recovery {
namespace {

int load_of(const State& state, int place) {
  const auto members = std::count_if(state.members.begin(), state.members.end(),
                                     [&](const Member& member) { return member.place == place && is_able(member); });
  const auto pending = std::count_if(state.pending_starts.begin(), state.pending_starts.end(),
                                     [&](const PendingStart& start) { return start.place == place; });
  return static_cast<int>(members + pending);
}

// The most processes that a place has when all that the run should have are dealt to all places in turn.
int share_of_a_place(const State& state) {
  const int all = state.target + state.policy.spares;
  return (all + state.policy.places - 1) / state.policy.places;
}

std::vector<Member> by_rank(const State& state, Stage stage) {
  std::vector<Member> members;
  for (const Member& member : state.members) {
    if (member.stage == stage) members.push_back(member);
  }
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
  return static_cast<int>(std::count_if(state.members.begin(), state.members.end(),
                                        [stage](const Member& member) { return member.stage == stage; }));
}

int count_in_generation(const State& state) {
  return static_cast<int>(std::count_if(state.members.begin(), state.members.end(), is_in_generation));
}

int count_able(const State& state) {
  const auto able = std::count_if(state.members.begin(), state.members.end(), is_able);
  return static_cast<int>(able) + static_cast<int>(state.pending_starts.size());
}

int wanted(const State& state) {
  return std::max(1, state.target - state.finished);
}

std::optional<int> free_place(const State& state) {
  std::optional<int> best;
  int fewest = share_of_a_place(state);
  for (int place = 0; place < state.policy.places; ++place) {
    const int load = load_of(state, place);
    if (state.left_out.at(static_cast<std::size_t>(place)) || load >= fewest) continue;
    best = place;
    fewest = load;
  }
  return best;
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
    std::stable_sort(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.step > b.step; });
  }
  members.insert(members.end(), ready.begin(), ready.end());
  members.resize(std::min(members.size(), size));
  std::vector<int> ids;
  for (const Member& member : members) ids.push_back(member.id);
  return ids;
}

std::vector<int> dealt_ranks(const State& state, const std::vector<int>& members) {
  std::vector<int> dealt(members.size(), -1);
  std::vector<int> others;
  for (const int id : members) {
    const Member& member = *find_member(state, id);
    const auto rank = static_cast<std::size_t>(member.rank);
    if (member.stage == Stage::waiting && rank < dealt.size()) {
      dealt[rank] = id;
    } else {
      others.push_back(id);
    }
  }
  for (std::size_t rank = 0, next = 0; rank < dealt.size(); ++rank) {
    if (dealt[rank] < 0) dealt[rank] = others[next++];
  }
  return dealt;
}

}  // namespace holdfast::recovery
