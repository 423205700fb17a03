// decide(): one switch hands each event to its function in run_events.cpp, member_events.cpp or host_events.cpp. They
// fill in a Draft (draft.h): the next state, the actions, and the reason in words. tests/scenarios/ has a readable file
// for each case.

#include "decide/supervisor.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "decide/draft.h"
#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

// Without a default: a new kind of event is a warning here until it has a function.
void take(Draft& draft) {
  switch (draft.event.kind) {
    case EventKind::start:
      return on_start(draft);
    case EventKind::ready:
      return on_ready(draft);
    case EventKind::checked_in:
      return on_checked_in(draft);
    case EventKind::progressed:
      return on_progressed(draft);
    case EventKind::finished:
      return on_finished(draft);
    case EventKind::failure_reported:
    case EventKind::device_failed:
    case EventKind::hang_detected:
      // The event itself says what is wrong with its member.
      return on_failure(draft, draft.event.what, CauseKind::reported);
    case EventKind::died:
      return on_died(draft);
    case EventKind::exited:
      return on_exited(draft);
    case EventKind::slow:
      return on_slow(draft);
    case EventKind::start_failed:
      return on_start_failed(draft);
    case EventKind::scale_requested:
      return on_scale_requested(draft);
    case EventKind::assignment_proposed:
      return on_assignment_proposed(draft);
    case EventKind::device_slot_lost:
      return on_slot_lost(draft);
    case EventKind::stop_requested:
      return on_stop_requested(draft);
    case EventKind::directory_lost:
      return on_directory_lost(draft);
    case EventKind::host_joined:
      return on_host_joined(draft);
    case EventKind::host_lost:
      return on_host_lost(draft);
    case EventKind::fence_passed:
      return on_fence_passed(draft);
    case EventKind::host_returned:
      return on_host_returned(draft);
    case EventKind::host_leaving:
      return on_host_leaving(draft);
    case EventKind::hosts_cut:
      return on_hosts_cut(draft);
    case EventKind::timer:
      return on_timer(draft);
  }
}

// Why the event has no meaning any more; empty if it has one. Events are queued, so the process or the run may have
// ended since.
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
  // Generations are counted over all starts of a run, so that no number comes twice.
  state.next_generation = first_generation;
  state.target = policy.replicas;
  state.device_slots.resize(static_cast<std::size_t>(policy.device_slots));
  state.hosts.resize(static_cast<std::size_t>(policy.hosts));
  // The head runs on host 0, so no agent has to join from there.
  state.hosts.front().stage = Host::Stage::there;
  return state;
}

Decision decide(const State& state, const Event& event, Moment now) {
  Draft draft{.state = state, .event = event, .now = now};
  const std::string dropped = why_dropped(draft);
  if (dropped.empty()) {
    if (!is_of_the_run(event.kind)) draft.subject = event.member;
    take(draft);
  } else {
    // The journal has a line for a dropped event, too, and each line has a reason.
    because(draft, dropped);
  }
  // Once at the end, for all that the event has changed.
  set_timer(draft);
  return {std::move(draft.state), std::move(draft.actions), std::move(draft.reason), draft.is_of_a_failure,
          std::move(draft.device_slot_changes)};
}

// An event of the run leaves `member` at 0. If it counted as an event of a member, it would be dropped once process 0
// is gone.
bool is_of_the_run(EventKind kind) {
  switch (kind) {
    case EventKind::start:
    case EventKind::progressed:
    case EventKind::scale_requested:
    case EventKind::assignment_proposed:
    case EventKind::device_slot_lost:
    case EventKind::stop_requested:
    case EventKind::directory_lost:
    case EventKind::host_joined:
    case EventKind::host_lost:
    case EventKind::fence_passed:
    case EventKind::host_returned:
    case EventKind::host_leaving:
    case EventKind::hosts_cut:
    case EventKind::timer:
      return true;
    case EventKind::ready:
    case EventKind::checked_in:
    case EventKind::finished:
    case EventKind::failure_reported:
    case EventKind::device_failed:
    case EventKind::died:
    case EventKind::exited:
    case EventKind::hang_detected:
    case EventKind::slow:
    case EventKind::start_failed:
      return false;
  }
  return false;
}

bool is_of_a_host(EventKind kind) {
  return kind == EventKind::host_joined || kind == EventKind::host_lost || kind == EventKind::fence_passed ||
         kind == EventKind::host_returned || kind == EventKind::host_leaving || kind == EventKind::hosts_cut;
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
  // An id is not an index, because members that are gone leave the list.
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

// Such an event is the last one of its member. No process is left to kill, and nothing more will explain the failure.
bool is_subject_gone(const Draft& draft) {
  return draft.event.kind == EventKind::exited || draft.event.kind == EventKind::start_failed;
}

}  // namespace holdfast::recovery
