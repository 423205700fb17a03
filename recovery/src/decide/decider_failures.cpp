#include <algorithm>
#include <csignal>
#include <utility>

#include "decide/decider.h"
#include "holdfast/base/error.h"
#include "holdfast/recovery/watchdog.h"

namespace holdfast::recovery {

void Decider::fail(const std::string& cause, bool is_explained) {
  const std::string sentence = name_of(*subject_) + ": " + cause;
  because(sentence);
  const bool was_in_generation = is_in_generation(*subject_) || state_.policy.all_start_together;
  const bool was_training = subject_->stage == Stage::training;
  const bool was_starting = subject_->stage == Stage::starting;
  subject_->stage = Stage::failed;
  is_of_a_failure_ = true;
  const bool is_of_the_newest = state_.phase == RunPhase::running;
  subject_->failure = Failure{.cause = cause,
                              .detected = now_,
                              .generation = is_of_the_newest ? state_.generation : state_.next_generation,
                              .step = event_.step,
                              .is_explained = is_explained,
                              .first_successor = was_starting ? state_.next_member : -1};
  if (!is_subject_gone()) act({.kind = ActionKind::kill_process, .member = subject_->id});
  const bool is_the_start_to_blame = is_explained && blames_the_start();
  if (is_explained) record(*subject_);
  if (is_ending()) return;
  const bool is_spared = !was_in_generation || (state_.policy.keep_survivors && is_on_trial(state_, *subject_));
  const bool others_go_on = is_spared && has_any(state_, is_in_generation);
  const bool is_a_further_one = was_in_generation && state_.failed_generation == state_.generation;
  if (was_in_generation) state_.failed_generation = state_.generation;
  if (event_.is_unrecoverable && !others_go_on) {
    return end_run(kExitUnrecoverable, sentence, "a new process would meet it again, so the run ends");
  }
  if (is_the_start_to_blame) return give_up_starting(sentence);
  const bool is_of_the_device = event_.kind == EventKind::device_failed;
  if (was_training && !others_go_on && !is_of_the_device && blames_the_step()) {
    const std::string reason = "gave up at step " + std::to_string(event_.step) + ", which failed " +
                               std::to_string(state_.failures_of_step) + " times in different processes";
    return end_run(kExitGaveUp, reason + ", the last time so: " + sentence, reason);
  }
  if (was_in_generation) lose_generation();
  if (state_.is_stop_requested) return go_on_stopping(sentence);
  replace({.sentence = sentence, .others_go_on = others_go_on, .is_a_further_one = is_a_further_one});
}

bool Decider::is_subject_gone() const {
  return event_.kind == EventKind::exited || event_.kind == EventKind::start_failed;
}

// Of several that die at once in a step only the first counts: that is no sign that the step is to blame.
bool Decider::blames_the_step() {
  if (event_.step < 0 || event_.is_joining) return false;
  if (state_.blamed_generation == state_.generation) return false;
  state_.blamed_generation = state_.generation;
  if (event_.step != state_.failed_step) state_.failures_of_step = 0;
  state_.failed_step = event_.step;
  return ++state_.failures_of_step >= state_.policy.failures_of_a_step;
}

// While nobody has ever got ready, nothing shows that this program can start at all, and what it does at every start is
// no accident: an exception, an exit code, a crash. SIGKILL comes from elsewhere, and so does what a device or the
// system does, which may pass. On a place where none has failed yet one may still get ready.
bool Decider::blames_the_start() {
  const Failure& failure = *subject_->failure;
  const bool has_left = event_.kind == EventKind::exited && event_.signal != SIGKILL;
  const bool is_its_own = has_left || event_.kind == EventKind::failure_reported;
  if (is_ending() || state_.is_stop_requested || state_.was_any_ready) return false;
  if (failure.first_successor < 0 || !is_its_own) return false;
  Place& place = state_.places.at(subject_->place);
  if (failure.cause != place.start_cause) place.failed_starts = 0;
  if (place.failed_starts > 0 && subject_->id < place.next_start) return false;
  place.start_cause = failure.cause;
  place.next_start = failure.first_successor;
  if (++place.failed_starts < state_.policy.failures_of_a_start) return false;
  return std::none_of(state_.places.begin(), state_.places.end(),
                      [this](const Place& other) { return other.failed_starts == 0 && !is_resting(other, now_); });
}

void Decider::give_up_starting(const std::string& failure) {
  const std::string reason = "gave up: no process has got ready, and " +
                             std::to_string(state_.policy.failures_of_a_start) +
                             " starts failed in the same way, one after the other";
  end_run(kExitGaveUp, reason + "; the last failure was " + failure, reason);
}

void Decider::lose_generation() {
  if (state_.phase == RunPhase::running) cancel_generation();
  state_.phase = RunPhase::gathering;
  state_.is_end_unexplained = false;
  if (state_.policy.keep_survivors) return;
  if (state_.policy.all_start_together) return end_all_for_a_new_start();
  because("all go back to the newest savepoint, as the run's options ask");
  dismiss_those_in({Stage::training, Stage::waiting});
}

// What those that finished did counts no more.
void Decider::end_all_for_a_new_start() {
  because("all start again together");
  dismiss_those_in({Stage::starting, Stage::ready, Stage::training, Stage::waiting});
  state_.finished = 0;
  state_.pending_starts.clear();
  state_.give_up_at = now_ + state_.policy.restart.kill_timeout;
}

void Decider::cancel_generation() {
  act({.kind = ActionKind::cancel_generation, .generation = state_.generation});
}

void Decider::go_on_stopping(const std::string& sentence) {
  if (has_any(state_, is_in_generation)) return open_if_possible();
  const std::string reason = "stopped as asked, but not in order";
  end_run(kExitStopped, reason + ": " + sentence, reason);
}

// A newcomer that fails while others go on has a budget of its own: however often it fails, that of the run is kept
// for those that train, and their progress does not make it start again at once.
void Decider::replace(const Loss& loss) {
  const RestartPolicy& policy = state_.policy.restart;
  RestartHistory& history = loss.others_go_on ? state_.newcomers : state_.history;
  blame_place(subject_->place, loss.sentence);
  if (event_.is_unrecoverable) {
    because("a new process would meet it again, so the others go on without one");
    return open_if_possible();
  }
  if (!allows_restart(policy, history, now_)) {
    if (!loss.others_go_on) {
      return end_run(kExitGaveUp, budget_spent() + "; the last failure was " + loss.sentence, budget_spent());
    }
    because("the others go on without a new process: " + limit() + " are spent");
    return open_if_possible();
  }
  const int without_progress = history.without_progress;
  history = with_restart(policy, std::move(history), now_);
  if (loss.is_a_further_one) history.without_progress = without_progress;
  because("restart " + std::to_string(history.restarts.size()) + " of at most " + limit());
  start_what_is_missing(pause_before(policy, history));
  open_if_possible();
}

std::string Decider::limit() const {
  const RestartPolicy& policy = state_.policy.restart;
  return std::to_string(policy.max_restarts) + " restarts within " + seconds(policy.restart_window);
}

std::string Decider::budget_spent() const {
  return "gave up after " + limit() + ", the limit of max_restarts and restart_window";
}

void Decider::blame_place(int place, const std::string& failure) {
  if (state_.policy.all_start_together) return;  // fewer would be no use
  Place& blamed = state_.places.at(place);
  const bool is_worn = ++blamed.failures >= state_.policy.failures_of_a_place || blamed.rest_ends;
  if (!is_worn || is_resting(blamed, now_) || count_usable_places(state_, now_) == 1) return;
  const bool is_of_a_trial = blamed.rest_ends.has_value();
  const std::string why = is_of_a_trial
                              ? "the process that tried it failed"
                              : std::to_string(blamed.failures) + " processes failed there one after the other";
  leave_out({.place = place, .member = subject_->id, .is_of_a_trial = is_of_a_trial, .failures = blamed.failures}, why,
            failure);
}

// `change` says which and why; the rest follows.
void Decider::leave_out(PlaceChange change, const std::string& why, const std::string& last_failure) {
  Place& place = state_.places.at(change.place);
  // What failed long ago says nothing of a device that has worked since.
  const std::optional<Moment> well_since = std::exchange(place.well_since, std::nullopt);
  if (well_since && now_ - *well_since >= state_.policy.longest_place_rest) place.times_left_out = 0;
  change.times_left_out = ++place.times_left_out;
  change.rest = rest_of_a_place(state_.policy, change.times_left_out);
  place.rest_ends = now_ + change.rest;
  place.first_on_trial = state_.next_member;
  place.why = why + (last_failure.empty() ? "" : "; the last failure was " + last_failure);
  is_of_a_failure_ = true;
  because("place " + std::to_string(change.place) + " is left out" + (change.is_of_a_trial ? " again: " : ": ") + why +
          "; it is tried again after " + seconds(change.rest));
  tell_of_place(change);
}

// One for each that is missing, the failed one's place first.
void Decider::start_what_is_missing(std::chrono::milliseconds pause) {
  const bool is_dealt_afresh = is_resting(state_.places.at(subject_->place), now_) || state_.policy.all_start_together;
  std::optional<int> place = is_dealt_afresh ? free_place(state_, now_) : subject_->place;
  for (int missing = count_missing(state_); missing > 0; --missing) {
    if (!place) return because(no_place_is_free());
    if (pause > std::chrono::milliseconds::zero()) {
      because("a new process starts in " + seconds(pause) + ", since there was no progress after the one before");
      start_later(*place, pause);
    } else if (state_.policy.start_delay > std::chrono::milliseconds::zero() && can_others_go_on()) {
      because("a new process starts in " + seconds(state_.policy.start_delay) +
              ", when the others, who need not wait for it, have gone on");
      start_later(*place, state_.policy.start_delay);
    } else if (must_wait_for_an_end()) {
      start_later(*place, {});
    } else {
      start_or_wait(*place);
    }
    place = free_place(state_, now_);
  }
}

// Without a pause, since no failure is the reason.
void Decider::start_missing() {
  while (count_missing(state_) > 0) {
    const std::optional<int> place = free_place(state_, now_);
    if (!place) return;
    start_or_wait(*place);
  }
}

// One newcomer for each, while the others train: so nobody waits for it, and its failure is no failure of the run.
bool Decider::try_rested_places() {
  if (state_.phase != RunPhase::running || state_.is_stop_requested) return false;
  bool is_any_tried = false;
  while (count_missing(state_) > 0) {
    const std::optional<int> place = place_to_try(state_, now_);
    if (!place) break;
    because("place " + std::to_string(*place) + " has rested and is tried again");
    start_or_wait(*place);
    is_any_tried = true;
  }
  return is_any_tried;
}

// Whoever asks for more replicas than there are places may know that a device is back.
void Decider::try_places_at_once() {
  while (count_missing(state_) > 0) {
    const std::optional<int> place = resting_place(state_, now_);
    if (!place) return;
    because("place " + std::to_string(*place) + " is tried before its rest is over, since it is needed");
    state_.places.at(*place).rest_ends = now_;
    start_or_wait(*place);
  }
}

bool Decider::can_others_go_on() const {
  if (!has_any(state_, is_in_generation)) return false;
  const int missing = wanted(state_) - count_in_generation(state_);
  return state_.policy.when_lost == WhenLost::shrink || count_stage(state_, Stage::ready) >= missing;
}

std::string Decider::no_place_is_free() {
  return "no other place is free, so the run goes on with fewer replicas";
}

}  // namespace holdfast::recovery
