#include <algorithm>
#include <utility>

#include "decide/draft.h"
#include "holdfast/base/error.h"
#include "holdfast/recovery/watchdog.h"

namespace holdfast::recovery {

namespace {

// timeout(1) sends SIGTERM to its child and to the group that the child is in, and a wrapper that passes signals on
// does the same: one wish, told twice within microseconds. Somebody who asks again has waited first.
constexpr std::chrono::seconds kSameWish(1);

}  // namespace

void on_start(Draft& draft) {
  HOLDFAST_ASSERT(draft.state.phase == RunPhase::idle);
  because(draft, "the run starts with " + std::to_string(draft.state.target) + " replicas and " +
                     std::to_string(draft.state.policy.recovery.spares) + " spares");
  draft.state.phase = RunPhase::gathering;
  for (int i = 0; i < draft.state.target + draft.state.policy.recovery.spares; ++i)
    start_process(draft, i % draft.state.policy.places);
}

void on_progressed(Draft& draft) {
  if (draft.event.generation != draft.state.generation)
    return because(draft, "progress of an earlier generation is dropped");
  because(draft, "the run got further than ever before");
  draft.state.history.without_progress = 0;
  if (draft.event.step > draft.state.failed_step) draft.state.failures_of_step = 0;
  bool is_any_back = false;
  for (const Member& member : draft.state.members) {
    if (member.stage == Stage::training && clears_place(draft, member)) is_any_back = true;
  }
  if (is_any_back && draft.state.phase == RunPhase::running && !draft.state.is_stop_requested) start_missing(draft);
}

// It has trained a step, which shows that the place is well. One that was there before the place was left out shows
// no more than it did then.
bool clears_place(Draft& draft, const Member& member) {
  Place& place = draft.state.places.at(member.place);
  if (place.rest_ends && !is_on_trial(draft.state, member)) return false;
  place.failures = 0;
  if (!std::exchange(place.rest_ends, std::nullopt)) return false;
  place.well_since = draft.now;
  because(draft,
          "place " + std::to_string(member.place) + " is used again: " + name_of(member) + " has trained a step there");
  tell_of_place(draft, {.kind = PlaceChange::Kind::used_again, .place = member.place, .member = member.id});
  return true;
}

void on_stop_requested(Draft& draft) {
  because(draft, signal_name(draft.event.signal) + " came");
  if (draft.state.phase == RunPhase::finishing) return end_run(draft, kExitFinished, "finished");
  if (draft.state.phase == RunPhase::ending) return because(draft, "the run ends as soon as all processes are gone");
  if (draft.state.is_stop_requested && draft.now - draft.state.stop_requested_at < kSameWish) {
    return because(draft, "it follows the first signal within " + seconds(kSameWish) + ", so it asks for nothing more");
  }
  if (draft.state.is_stop_requested) return end_run(draft, kExitStopped, "stopped at once by a second signal");
  draft.state.is_stop_requested = true;
  draft.state.stop_requested_at = draft.now;
  draft.state.pending_starts.clear();
  if (draft.state.phase == RunPhase::idle || !has_any(draft.state, is_in_generation)) {
    because(draft, "no replica has anything to save");
    return end_run(draft, kExitStopped, stopped());
  }
  because(draft, "replicas have " + seconds(draft.state.policy.recovery.stop_grace) + " to save and leave");
  dismiss_those_in(draft, {Stage::starting, Stage::ready});
  act(draft, {.kind = ActionKind::ask_to_stop});
  draft.state.give_up_at = draft.now + draft.state.policy.recovery.stop_grace;
  open_if_possible(draft);
}

void on_scale_requested(Draft& draft) {
  if (draft.event.count < 1)
    return because(draft, std::to_string(draft.event.count) + " replicas were asked for; at least 1 is needed");
  if (draft.state.is_stop_requested || is_ending(draft))
    return because(draft, "the run is ending, so it stays as it is");
  if (draft.state.policy.all_start_together)
    return because(draft, "all processes start together, so the run stays as it is");
  if (draft.state.phase == RunPhase::idle) return because(draft, "the run has not started yet, so it stays as it is");
  because(draft, std::to_string(draft.event.count) + " replicas were asked for, there were to be " +
                     std::to_string(draft.state.target));
  draft.state.target = draft.event.count;
  start_missing(draft);
  try_rested_places(draft);
  try_places_at_once(draft);
  dismiss_surplus(draft);
  regroup_if_that_changes_anything(draft);
  open_if_possible(draft);
}

// The members go on with it, and with their state, in a generation of their own.
void on_deal_proposed(Draft& draft) {
  if (draft.event.generation != draft.state.generation || draft.state.phase != RunPhase::running) {
    return because(draft, "a deal for a generation that has ended is dropped");
  }
  because(draft, draft.event.what);
  if (draft.state.is_stop_requested) return because(draft, "the run is to stop, so shards stay as they are");
  if (draft.state.is_regroup_asked)
    return because(draft, "the generation regroups already, so shards stay as they are");
  std::vector<int> by_rank = training_by_rank(draft.state);
  if (by_rank.size() != draft.event.shards.size())
    return because(draft, "some have finished, so shards stay as they are");
  draft.state.deal = {.members = std::move(by_rank), .shards = draft.event.shards};
  because(draft, "shards are dealt anew at the next step");
  draft.state.is_regroup_asked = true;
  act(draft, {.kind = ActionKind::ask_to_regroup});
}

// Its device says so itself, so that no further process has to fail there. Those that run there fail on their own
// account.
void on_place_lost(Draft& draft) {
  because(draft, "place " + std::to_string(draft.event.place) + " is lost: " + draft.event.what);
  if (is_ending(draft)) return because(draft, "the run is ending, so it stays as it is");
  if (is_resting(draft.state.places.at(draft.event.place), draft.now)) return because(draft, "it is left out already");
  if (draft.state.policy.all_start_together || count_usable_places(draft.state, draft.now) == 1) {
    return because(draft, "no other could take its part, so it is used on");
  }
  leave_out(draft, {.place = draft.event.place, .device = draft.event.what}, draft.event.what, "");
  for (PendingStart& pending : draft.state.pending_starts) {
    if (pending.place == draft.event.place) pending.place = free_place(draft.state, draft.now).value_or(pending.place);
  }
}

void on_directory_lost(Draft& draft) {
  if (draft.state.phase == RunPhase::ending) return because(draft, draft.event.what + "; the run ends already");
  end_run(draft, kExitUnrecoverable, draft.event.what);
}

// Those that no generation will need; members of the running one have to check in first.
void dismiss_surplus(Draft& draft) {
  const auto is_surplus = [&draft] {
    return count_able(draft.state) - count_in_generation(draft.state) >
           std::max(0, wanted(draft.state) - count_in_generation(draft.state)) + draft.state.policy.recovery.spares;
  };
  while (is_surplus() && !draft.state.pending_starts.empty()) draft.state.pending_starts.pop_back();
  for (const Stage stage : {Stage::starting, Stage::ready}) {
    for (auto member = draft.state.members.rbegin(); member != draft.state.members.rend() && is_surplus(); ++member) {
      if (member->stage == stage) dismiss(draft, *member);
    }
  }
}

void on_timer(Draft& draft) {
  draft.state.timer.reset();
  if (draft.state.give_up_at && draft.now >= *draft.state.give_up_at) return on_patience_lost(draft);
  const bool is_any_due = start_what_is_due(draft, "the pause before a new process is over");
  if (!try_rested_places(draft) && !is_any_due) return because(draft, "a timer that was replaced is dropped");
  open_if_possible(draft);
}

bool start_what_is_due(Draft& draft, const std::string& why) {
  if (must_wait_for_an_end(draft)) {
    because(draft, "new processes wait for the end of those before them");
    return false;
  }
  std::vector<PendingStart> due;
  std::erase_if(draft.state.pending_starts, [&](const PendingStart& pending) {
    if (draft.now < start_of(draft, pending)) return false;
    due.push_back(pending);
    return true;
  });
  if (due.empty()) return false;
  because(draft, why);
  for (const PendingStart& pending : due) start_pending(draft, pending);
  return true;
}

Moment start_of(const Draft& draft, const PendingStart& pending) {
  return is_held(draft, pending.place) ? pending.at_latest : pending.due;
}

// By a killed process whose memory the next one there may need.
bool is_held(const Draft& draft, int place) {
  return draft.state.policy.starts_when_gone() &&
         has_any(draft.state, [&](const Member& member) { return holds_place(draft, member, place); });
}

bool holds_place(const Draft& draft, const Member& member, int place) {
  const bool is_gone = member.id == draft.subject && is_subject_gone(draft);
  return member.place == place && was_killed(member) && !is_gone;
}

bool must_wait_for_an_end(const Draft& draft) {
  return draft.state.policy.all_start_together && has_any(draft.state, was_killed);
}

// Whose end the next generation may have to wait for.
bool holds_up(const Draft& draft, const Member& member) {
  return draft.state.policy.all_start_together ? was_killed(member) : could_still_write(member);
}

// The place may have been left out during the pause.
void start_pending(Draft& draft, const PendingStart& pending) {
  const bool is_left_out = is_resting(draft.state.places.at(pending.place), draft.now);
  const std::optional<int> place = is_left_out ? free_place(draft.state, draft.now) : pending.place;
  if (!place) return because(draft, no_place_is_free());
  if (is_held(draft, *place) && draft.now < pending.at_latest) return start_later(draft, *place, {});
  if (is_held(draft, *place)) {
    because(draft, names_of(draft, [&](const Member& member) { return holds_place(draft, member, *place); }) +
                       " did not end in time, so a new process starts beside it");
  }
  start_process(draft, *place);
}

void start_or_wait(Draft& draft, int place) {
  if (!is_held(draft, place)) return start_process(draft, place);
  because(draft, "a new process starts on place " + std::to_string(place) + " when " +
                     names_of(draft, [&](const Member& member) { return holds_place(draft, member, place); }) +
                     " is gone");
  start_later(draft, place, {});
}

void start_later(Draft& draft, int place, std::chrono::milliseconds pause) {
  draft.state.pending_starts.push_back(
      {.due = draft.now + pause,
       .place = place,
       .at_latest = draft.now + std::max(pause, draft.state.policy.restart.kill_timeout)});
}

void on_patience_lost(Draft& draft) {
  const bool is_gathering = draft.state.phase == RunPhase::gathering && !draft.state.is_stop_requested;
  const std::string remaining =
      names_of(draft, [&](const Member& member) { return !is_gathering || holds_up(draft, member); });
  draft.state.give_up_at.reset();
  because(draft, remaining + " did not leave in time");
  if (draft.state.phase == RunPhase::ending) {
    return finish_run(draft, kExitGaveUp,
                      "gave up: " + remaining + " did not end within " +
                          seconds(draft.state.policy.restart.kill_timeout) +
                          " of SIGKILL; before that: " + draft.state.verdict->sentence);
  }
  if (draft.state.phase == RunPhase::finishing) return end_run(draft, kExitFinished, "finished");
  if (!draft.state.is_stop_requested) return end_run(draft, kExitGaveUp, "gave up: " + remaining + " cannot be killed");
  end_run(draft, kExitStopped,
          "stopped as asked, but " + remaining + " had to be killed after " +
              seconds(draft.state.policy.recovery.stop_grace));
}

}  // namespace holdfast::recovery
