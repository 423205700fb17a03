// decide(): one table hands each event to its function in run_events.cpp or member_events.cpp. They fill in a Draft
// (draft.h): the next state, the actions, and the reason in words. tests/scenarios/ has a readable file for each case.

#include "decide/supervisor.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "decide/draft.h"
#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

// The event itself says what is wrong with its member.
void on_failure_seen(Draft& draft) {
  on_failure(draft, draft.event.what, true);
}

struct EventRow {
  EventKind kind;
  bool is_of_the_run;
  void (*take)(Draft& draft);
};

// In the order of the enumerators.
constexpr std::array<EventRow, 18> kEvents{{
    {EventKind::start, true, on_start},
    {EventKind::ready, false, on_ready},
    {EventKind::checked_in, false, on_checked_in},
    {EventKind::progressed, true, on_progressed},
    {EventKind::finished, false, on_finished},
    {EventKind::failure_reported, false, on_failure_seen},
    {EventKind::device_failed, false, on_failure_seen},
    {EventKind::died, false, on_died},
    {EventKind::exited, false, on_exited},
    {EventKind::hang_detected, false, on_failure_seen},
    {EventKind::slow, false, on_slow},
    {EventKind::start_failed, false, on_start_failed},
    {EventKind::scale_requested, true, on_scale_requested},
    {EventKind::assignment_proposed, true, on_assignment_proposed},
    {EventKind::place_lost, true, on_slot_lost},
    {EventKind::stop_requested, true, on_stop_requested},
    {EventKind::directory_lost, true, on_directory_lost},
    {EventKind::timer, true, on_timer},
}};

constexpr bool is_misplaced(const EventRow& row, const EventRow& next) {
  return row.kind >= next.kind;
}
static_assert(std::adjacent_find(kEvents.begin(), kEvents.end(), is_misplaced) == kEvents.end());
static_assert(kEvents.size() == static_cast<std::size_t>(EventKind::timer) + 1);

// Events are queued, so the process or the run may have ended since.
// Why the event has no meaning any more; empty if it has one.
std::string why_dropped(const Draft& draft) {
  const Event& event = draft.event;
  if (is_of_the_run(event.kind)) return draft.state.phase == RunPhase::over ? "the run is over" : "";
  const bool is_there = find_member(draft.state, event.member) != nullptr;
  if (is_there && draft.state.phase != RunPhase::over) return "";
  return fmt::format("{} of process {} is dropped, since that process is gone", to_string(event.kind), event.member);
}

}  // namespace

State initial_state(const SupervisorPolicy& policy, int first_generation) {
  State state;
  state.policy = policy;
  state.next_generation = first_generation;
  state.target = policy.replicas;
  state.device_slots.resize(static_cast<std::size_t>(policy.device_slots));
  return state;
}

Decision decide(const State& state, const Event& event, Moment now) {
  Draft draft{.state = state, .event = event, .now = now};
  const std::string dropped = why_dropped(draft);
  if (dropped.empty()) {
    if (!is_of_the_run(event.kind)) draft.subject = event.member;
    kEvents.at(static_cast<std::size_t>(event.kind)).take(draft);
  } else {
    because(draft, dropped);
  }
  // Once at the end, for all that the event has changed.
  set_timer(draft);
  return {std::move(draft.state), std::move(draft.actions), std::move(draft.reason), draft.is_of_a_failure,
          std::move(draft.device_slot_changes)};
}

bool is_of_the_run(EventKind kind) {
  return kEvents.at(static_cast<std::size_t>(kind)).is_of_the_run;
}

void act(Draft& draft, Action action) {
  draft.actions.push_back(std::move(action));
}

void because(Draft& draft, const std::string& clause) {
  // Two functions on one path may have the same reason.
  if (draft.reason.ends_with(clause)) return;
  draft.reason += (draft.reason.empty() ? "" : "; ") + clause;
}

Member& member_of(Draft& draft, int id) {
  std::vector<Member>& members = draft.state.members;
  const auto found = std::find_if(members.begin(), members.end(), [id](const Member& m) { return m.id == id; });
  HOLDFAST_ASSERT(found != members.end());
  return *found;
}

Member& subject(Draft& draft) {
  HOLDFAST_ASSERT(draft.subject.has_value());
  return member_of(draft, *draft.subject);
}

const Member& subject(const Draft& draft) {
  HOLDFAST_ASSERT(draft.subject.has_value());
  const Member* found = find_member(draft.state, *draft.subject);
  HOLDFAST_ASSERT(found != nullptr);
  return *found;
}

bool is_subject_gone(const Draft& draft) {
  return draft.event.kind == EventKind::exited || draft.event.kind == EventKind::start_failed;
}

}  // namespace holdfast::recovery
