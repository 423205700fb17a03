#include <algorithm>
#include <csignal>
#include <utility>

#include "decide/draft.h"
#include "holdfast/base/error.h"
#include "holdfast/recovery/watchdog.h"

namespace holdfast::recovery {

void fail_subject(Draft& draft, const std::string& cause, bool is_explained) {
  const std::string sentence = name_of(subject(draft)) + ": " + cause;
  because(draft, sentence);
  const bool was_in_generation = is_in_generation(subject(draft)) || draft.state.policy.all_start_together;
  const bool was_training = subject(draft).stage == Stage::training;
  const bool was_starting = subject(draft).stage == Stage::starting;
  subject(draft).stage = Stage::failed;
  draft.is_of_a_failure = true;
  const bool is_of_the_newest = draft.state.phase == RunPhase::running;
  subject(draft).failure =
      Failure{.cause = cause,
              .detected = draft.now,
              .generation = is_of_the_newest ? draft.state.generation : draft.state.next_generation,
              .step = draft.event.step,
              .is_explained = is_explained,
              .first_successor = was_starting ? draft.state.next_member : -1};
  if (!is_subject_gone(draft)) act(draft, {.kind = ActionKind::kill_process, .member = subject(draft).id});
  const bool is_the_start_to_blame = is_explained && blames_the_start(draft);
  if (is_explained) record_failure(draft, subject(draft));
  if (is_ending(draft)) return;
  const bool is_spared =
      !was_in_generation || (draft.state.policy.keep_survivors && is_on_trial(draft.state, subject(draft)));
  const bool others_go_on = is_spared && has_any(draft.state, is_in_generation);
  const bool is_a_further_one = was_in_generation && draft.state.failed_generation == draft.state.generation;
  if (was_in_generation) draft.state.failed_generation = draft.state.generation;
  if (draft.event.is_unrecoverable && !others_go_on) {
    return end_run(draft, kExitUnrecoverable, sentence, "a new process would meet it again, so the run ends");
  }
  if (is_the_start_to_blame) return give_up_starting(draft, sentence);
  const bool is_of_the_device = draft.event.kind == EventKind::device_failed;
  if (was_training && !others_go_on && !is_of_the_device && blames_the_step(draft)) {
    const std::string reason = "gave up at step " + std::to_string(draft.event.step) + ", which failed " +
                               std::to_string(draft.state.failures_of_step) + " times in different processes";
    return end_run(draft, kExitGaveUp, reason + ", the last time so: " + sentence, reason);
  }
  if (was_in_generation) lose_generation(draft);
  if (draft.state.is_stop_requested) return go_on_stopping(draft, sentence);
  replace_lost(draft, {.sentence = sentence, .others_go_on = others_go_on, .is_a_further_one = is_a_further_one});
}

// Of several that die at once in a step only the first counts: that is no sign that the step is to blame.
bool blames_the_step(Draft& draft) {
  if (draft.event.step < 0 || draft.event.is_joining) return false;
  if (draft.state.blamed_generation == draft.state.generation) return false;
  draft.state.blamed_generation = draft.state.generation;
  if (draft.event.step != draft.state.failed_step) draft.state.failures_of_step = 0;
  draft.state.failed_step = draft.event.step;
  return ++draft.state.failures_of_step >= draft.state.policy.failures_of_a_step;
}

// While nobody has ever got ready, nothing shows that this program can start at all, and what it does at every start is
// no accident: an exception, an exit code, a crash. SIGKILL comes from elsewhere, and so does what a device or the
// system does, which may pass. On a place where none has failed yet one may still get ready.
bool blames_the_start(Draft& draft) {
  const Failure& failure = *subject(draft).failure;
  const bool has_left = draft.event.kind == EventKind::exited && draft.event.signal != SIGKILL;
  const bool is_its_own = has_left || draft.event.kind == EventKind::failure_reported;
  if (is_ending(draft) || draft.state.is_stop_requested || draft.state.was_any_ready) return false;
  if (failure.first_successor < 0 || !is_its_own) return false;
  Place& place = draft.state.places.at(subject(draft).place);
  if (failure.cause != place.start_cause) place.failed_starts = 0;
  if (place.failed_starts > 0 && subject(draft).id < place.next_start) return false;
  place.start_cause = failure.cause;
  place.next_start = failure.first_successor;
  if (++place.failed_starts < draft.state.policy.failures_of_a_start) return false;
  return std::none_of(draft.state.places.begin(), draft.state.places.end(), [&draft](const Place& other) {
    return other.failed_starts == 0 && !is_resting(other, draft.now);
  });
}

void give_up_starting(Draft& draft, const std::string& failure) {
  const std::string reason = "gave up: no process has got ready, and " +
                             std::to_string(draft.state.policy.failures_of_a_start) +
                             " starts failed in the same way, one after the other";
  end_run(draft, kExitGaveUp, reason + "; the last failure was " + failure, reason);
}

void lose_generation(Draft& draft) {
  if (draft.state.phase == RunPhase::running) cancel_generation(draft);
  draft.state.phase = RunPhase::gathering;
  draft.state.is_end_unexplained = false;
  if (draft.state.policy.keep_survivors) return;
  if (draft.state.policy.all_start_together) return end_all_for_a_new_start(draft);
  because(draft, "all go back to the newest savepoint, as the run's options ask");
  dismiss_those_in(draft, {Stage::training, Stage::waiting});
}

// What those that finished did counts no more.
void end_all_for_a_new_start(Draft& draft) {
  because(draft, "all start again together");
  dismiss_those_in(draft, {Stage::starting, Stage::ready, Stage::training, Stage::waiting});
  draft.state.finished = 0;
  draft.state.pending_starts.clear();
  draft.state.give_up_at = draft.now + draft.state.policy.restart.kill_timeout;
}

void cancel_generation(Draft& draft) {
  act(draft, {.kind = ActionKind::cancel_generation, .generation = draft.state.generation});
}

void go_on_stopping(Draft& draft, const std::string& sentence) {
  if (has_any(draft.state, is_in_generation)) return open_if_possible(draft);
  const std::string reason = "stopped as asked, but not in order";
  end_run(draft, kExitStopped, reason + ": " + sentence, reason);
}

// A newcomer that fails while others go on has a budget of its own: however often it fails, that of the run is kept
// for those that train, and their progress does not make it start again at once.
void replace_lost(Draft& draft, const Loss& loss) {
  const RecoveryOptions& options = draft.state.policy.recovery;
  RestartHistory& history = loss.others_go_on ? draft.state.newcomers : draft.state.history;
  blame_place(draft, subject(draft).place, loss.sentence);
  if (draft.event.is_unrecoverable) {
    because(draft, "a new process would meet it again, so the others go on without one");
    return open_if_possible(draft);
  }
  if (!allows_restart(options, history, draft.now)) {
    if (!loss.others_go_on) {
      return end_run(draft, kExitGaveUp, budget_spent(draft) + "; the last failure was " + loss.sentence,
                     budget_spent(draft));
    }
    because(draft, "the others go on without a new process: " + restart_limit(draft) + " are spent");
    return open_if_possible(draft);
  }
  const int without_progress = history.without_progress;
  history = with_restart(options, std::move(history), draft.now);
  if (loss.is_a_further_one) history.without_progress = without_progress;
  because(draft, "restart " + std::to_string(history.restarts.size()) + " of at most " + restart_limit(draft));
  start_what_is_missing(draft, pause_before(draft.state.policy.restart, history));
  open_if_possible(draft);
}

std::string restart_limit(const Draft& draft) {
  const RecoveryOptions& options = draft.state.policy.recovery;
  return std::to_string(options.max_restarts) + " restarts within " + seconds(options.restart_window);
}

std::string budget_spent(const Draft& draft) {
  return "gave up after " + restart_limit(draft) + ", the limit of max_restarts and restart_window";
}

void blame_place(Draft& draft, int place, const std::string& failure) {
  if (draft.state.policy.all_start_together) return;  // fewer would be no use
  Place& blamed = draft.state.places.at(place);
  const bool is_worn = ++blamed.failures >= draft.state.policy.failures_of_a_place || blamed.rest_ends;
  if (!is_worn || is_resting(blamed, draft.now) || count_usable_places(draft.state, draft.now) == 1) return;
  const bool is_of_a_trial = blamed.rest_ends.has_value();
  const std::string why = is_of_a_trial
                              ? "the process that tried it failed"
                              : std::to_string(blamed.failures) + " processes failed there one after the other";
  leave_out(draft,
            {.place = place, .member = subject(draft).id, .is_of_a_trial = is_of_a_trial, .failures = blamed.failures},
            why, failure);
}

// `change` says which and why; the rest follows.
void leave_out(Draft& draft, PlaceChange change, const std::string& why, const std::string& last_failure) {
  Place& place = draft.state.places.at(change.place);
  // What failed long ago says nothing of a device that has worked since.
  const std::optional<Moment> well_since = std::exchange(place.well_since, std::nullopt);
  if (well_since && draft.now - *well_since >= draft.state.policy.longest_place_rest) place.times_left_out = 0;
  change.times_left_out = ++place.times_left_out;
  change.rest = rest_of_a_place(draft.state.policy, change.times_left_out);
  place.rest_ends = draft.now + change.rest;
  place.first_on_trial = draft.state.next_member;
  place.why = why + (last_failure.empty() ? "" : "; the last failure was " + last_failure);
  draft.is_of_a_failure = true;
  because(draft, "place " + std::to_string(change.place) + " is left out" + (change.is_of_a_trial ? " again: " : ": ") +
                     why + "; it is tried again after " + seconds(change.rest));
  tell_of_place(draft, change);
}

// One for each that is missing, the failed one's place first.
void start_what_is_missing(Draft& draft, std::chrono::milliseconds pause) {
  const bool is_dealt_afresh =
      is_resting(draft.state.places.at(subject(draft).place), draft.now) || draft.state.policy.all_start_together;
  std::optional<int> place = is_dealt_afresh ? free_place(draft.state, draft.now) : subject(draft).place;
  for (int missing = count_missing(draft.state); missing > 0; --missing) {
    if (!place) return because(draft, no_place_is_free());
    if (pause > std::chrono::milliseconds::zero()) {
      because(draft,
              "a new process starts in " + seconds(pause) + ", since there was no progress after the one before");
      start_later(draft, *place, pause);
    } else if (draft.state.policy.start_delay > std::chrono::milliseconds::zero() && can_others_go_on(draft)) {
      because(draft, "a new process starts in " + seconds(draft.state.policy.start_delay) +
                         ", when the others, who need not wait for it, have gone on");
      start_later(draft, *place, draft.state.policy.start_delay);
    } else if (must_wait_for_an_end(draft)) {
      start_later(draft, *place, {});
    } else {
      start_or_wait(draft, *place);
    }
    place = free_place(draft.state, draft.now);
  }
}

// Without a pause, since no failure is the reason.
void start_missing(Draft& draft) {
  while (count_missing(draft.state) > 0) {
    const std::optional<int> place = free_place(draft.state, draft.now);
    if (!place) return;
    start_or_wait(draft, *place);
  }
}

// One newcomer for each, while the others train: so nobody waits for it, and its failure is no failure of the run.
bool try_rested_places(Draft& draft) {
  if (draft.state.phase != RunPhase::running || draft.state.is_stop_requested) return false;
  bool is_any_tried = false;
  while (count_missing(draft.state) > 0) {
    const std::optional<int> place = place_to_try(draft.state, draft.now);
    if (!place) break;
    because(draft, "place " + std::to_string(*place) + " has rested and is tried again");
    start_or_wait(draft, *place);
    is_any_tried = true;
  }
  return is_any_tried;
}

// Whoever asks for more replicas than there are places may know that a device is back.
void try_places_at_once(Draft& draft) {
  while (count_missing(draft.state) > 0) {
    const std::optional<int> place = resting_place(draft.state, draft.now);
    if (!place) return;
    because(draft, "place " + std::to_string(*place) + " is tried before its rest is over, since it is needed");
    draft.state.places.at(*place).rest_ends = draft.now;
    start_or_wait(draft, *place);
  }
}

bool can_others_go_on(const Draft& draft) {
  if (!has_any(draft.state, is_in_generation)) return false;
  const int missing = wanted(draft.state) - count_in_generation(draft.state);
  return draft.state.policy.recovery.when_lost == WhenLost::shrink || count_stage(draft.state, Stage::ready) >= missing;
}

std::string no_place_is_free() {
  return "no other place is free, so the run goes on with fewer replicas";
}

}  // namespace holdfast::recovery
