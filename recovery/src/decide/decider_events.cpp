#include <algorithm>
#include <utility>

#include "decide/decider.h"
#include "holdfast/base/error.h"
#include "holdfast/recovery/watchdog.h"

namespace holdfast::recovery {

namespace {

// timeout(1) sends SIGTERM to its child and to the group that the child is in, and a wrapper that passes signals on
// does the same: one wish, told twice within microseconds. Somebody who asks again has waited first.
constexpr std::chrono::seconds kSameWish(1);

bool is_of_the_run(EventKind kind) {
  return kind == EventKind::start || kind == EventKind::stop_requested || kind == EventKind::scale_requested ||
         kind == EventKind::deal_proposed || kind == EventKind::place_lost || kind == EventKind::progressed ||
         kind == EventKind::directory_lost || kind == EventKind::timer;
}

}  // namespace

Decider::Decider(const State& state, const Event& event, Moment now) : state_(state), event_(event), now_(now) {}

Decision Decider::decide() {
  if (is_of_the_run(event_.kind)) {
    on_run_event();
  } else {
    on_member_event();
  }
  set_timer();
  return {std::move(state_), std::move(actions_), std::move(reason_), is_of_a_failure_, std::move(place_changes_)};
}

void Decider::on_run_event() {
  if (state_.phase == RunPhase::over) return because("the run is over");
  switch (event_.kind) {
    case EventKind::start:
      return on_start();
    case EventKind::stop_requested:
      return on_stop_requested();
    case EventKind::scale_requested:
      return on_scale_requested();
    case EventKind::deal_proposed:
      return on_deal_proposed();
    case EventKind::place_lost:
      return on_place_lost();
    case EventKind::progressed:
      return on_progressed();
    case EventKind::directory_lost:
      return on_directory_lost();
    default:
      return on_timer();
  }
}

void Decider::on_start() {
  HOLDFAST_ASSERT(state_.phase == RunPhase::idle);
  because("the run starts with " + std::to_string(state_.target) + " replicas and " +
          std::to_string(state_.policy.spares) + " spares");
  state_.phase = RunPhase::gathering;
  for (int i = 0; i < state_.target + state_.policy.spares; ++i) start_process(i % state_.policy.places);
}

void Decider::on_progressed() {
  if (event_.generation != state_.generation) return because("progress of an earlier generation is dropped");
  because("the run got further than ever before");
  state_.history.without_progress = 0;
  if (event_.step > state_.failed_step) state_.failures_of_step = 0;
  bool is_any_back = false;
  for (const Member& member : state_.members) {
    if (member.stage == Stage::training && clears_place(member)) is_any_back = true;
  }
  if (is_any_back && state_.phase == RunPhase::running && !state_.is_stop_requested) start_missing();
}

// It has trained a step, which shows that the place is well. One that was there before the place was left out shows
// no more than it did then.
bool Decider::clears_place(const Member& member) {
  Place& place = state_.places.at(member.place);
  if (place.rest_ends && !is_on_trial(state_, member)) return false;
  place.failures = 0;
  if (!std::exchange(place.rest_ends, std::nullopt)) return false;
  place.well_since = now_;
  because("place " + std::to_string(member.place) + " is used again: " + name_of(member) + " has trained a step there");
  tell_of_place({.kind = PlaceChange::Kind::used_again, .place = member.place, .member = member.id});
  return true;
}

void Decider::on_stop_requested() {
  because(signal_name(event_.signal) + " came");
  if (state_.phase == RunPhase::finishing) return end_run(kExitFinished, "finished");
  if (state_.phase == RunPhase::ending) return because("the run ends as soon as all processes are gone");
  if (state_.is_stop_requested && now_ - state_.stop_requested_at < kSameWish) {
    return because("it follows the first signal within " + seconds(kSameWish) + ", so it asks for nothing more");
  }
  if (state_.is_stop_requested) return end_run(kExitStopped, "stopped at once by a second signal");
  state_.is_stop_requested = true;
  state_.stop_requested_at = now_;
  state_.pending_starts.clear();
  if (state_.phase == RunPhase::idle || !has_any(state_, is_in_generation)) {
    because("no replica has anything to save");
    return end_run(kExitStopped, stopped());
  }
  because("replicas have " + seconds(state_.policy.restart.stop_grace) + " to save and leave");
  dismiss_those_in({Stage::starting, Stage::ready});
  act({.kind = ActionKind::ask_to_stop});
  state_.give_up_at = now_ + state_.policy.restart.stop_grace;
  open_if_possible();
}

void Decider::on_scale_requested() {
  if (event_.count < 1) return because(std::to_string(event_.count) + " replicas were asked for; at least 1 is needed");
  if (state_.is_stop_requested || is_ending()) return because("the run is ending, so it stays as it is");
  if (state_.policy.all_start_together) return because("all processes start together, so the run stays as it is");
  if (state_.phase == RunPhase::idle) return because("the run has not started yet, so it stays as it is");
  because(std::to_string(event_.count) + " replicas were asked for, there were to be " + std::to_string(state_.target));
  state_.target = event_.count;
  start_missing();
  try_rested_places();
  try_places_at_once();
  dismiss_surplus();
  regroup_if_that_changes_anything();
  open_if_possible();
}

// The members go on with it, and with their state, in a generation of their own.
void Decider::on_deal_proposed() {
  if (event_.generation != state_.generation || state_.phase != RunPhase::running) {
    return because("a deal for a generation that has ended is dropped");
  }
  because(event_.what);
  if (state_.is_stop_requested) return because("the run is to stop, so shards stay as they are");
  if (state_.is_regroup_asked) return because("the generation regroups already, so shards stay as they are");
  std::vector<int> by_rank = training_by_rank(state_);
  if (by_rank.size() != event_.shards.size()) return because("some have finished, so shards stay as they are");
  state_.deal = {.members = std::move(by_rank), .shards = event_.shards};
  because("shards are dealt anew at the next step");
  state_.is_regroup_asked = true;
  act({.kind = ActionKind::ask_to_regroup});
}

// Its device says so itself, so that no further process has to fail there. Those that run there fail on their own
// account.
void Decider::on_place_lost() {
  because("place " + std::to_string(event_.place) + " is lost: " + event_.what);
  if (is_ending()) return because("the run is ending, so it stays as it is");
  if (is_resting(state_.places.at(event_.place), now_)) return because("it is left out already");
  if (state_.policy.all_start_together || count_usable_places(state_, now_) == 1) {
    return because("no other could take its part, so it is used on");
  }
  leave_out({.place = event_.place, .device = event_.what}, event_.what, "");
  for (PendingStart& pending : state_.pending_starts) {
    if (pending.place == event_.place) pending.place = free_place(state_, now_).value_or(pending.place);
  }
}

void Decider::on_directory_lost() {
  if (state_.phase == RunPhase::ending) return because(event_.what + "; the run ends already");
  end_run(kExitUnrecoverable, event_.what);
}

// Those that no generation will need; members of the running one have to check in first.
void Decider::dismiss_surplus() {
  const auto is_surplus = [this] {
    return count_able(state_) - count_in_generation(state_) >
           std::max(0, wanted(state_) - count_in_generation(state_)) + state_.policy.spares;
  };
  while (is_surplus() && !state_.pending_starts.empty()) state_.pending_starts.pop_back();
  for (const Stage stage : {Stage::starting, Stage::ready}) {
    for (auto member = state_.members.rbegin(); member != state_.members.rend() && is_surplus(); ++member) {
      if (member->stage == stage) dismiss(*member);
    }
  }
}

void Decider::on_timer() {
  state_.timer.reset();
  if (state_.give_up_at && now_ >= *state_.give_up_at) return on_patience_lost();
  const bool is_any_due = start_what_is_due("the pause before a new process is over");
  if (!try_rested_places() && !is_any_due) return because("a timer that was replaced is dropped");
  open_if_possible();
}

bool Decider::start_what_is_due(const std::string& why) {
  if (must_wait_for_an_end()) {
    because("new processes wait for the end of those before them");
    return false;
  }
  std::vector<PendingStart> due;
  std::erase_if(state_.pending_starts, [&](const PendingStart& pending) {
    if (now_ < start_of(pending)) return false;
    due.push_back(pending);
    return true;
  });
  if (due.empty()) return false;
  because(why);
  for (const PendingStart& pending : due) start_pending(pending);
  return true;
}

Moment Decider::start_of(const PendingStart& pending) const {
  return is_held(pending.place) ? pending.at_latest : pending.due;
}

// By a killed process whose memory the next one there may need.
bool Decider::is_held(int place) const {
  return state_.policy.start_when_gone && has_any(state_, [&](const Member& member) { return holds(member, place); });
}

bool Decider::holds(const Member& member, int place) const {
  const bool is_gone = &member == subject_ && is_subject_gone();
  return member.place == place && was_killed(member) && !is_gone;
}

bool Decider::must_wait_for_an_end() const {
  return state_.policy.all_start_together && has_any(state_, was_killed);
}

// Whose end the next generation may have to wait for.
bool Decider::holds_up(const Member& member) const {
  return state_.policy.all_start_together ? was_killed(member) : could_still_write(member);
}

// The place may have been left out during the pause.
void Decider::start_pending(const PendingStart& pending) {
  const bool is_left_out = is_resting(state_.places.at(pending.place), now_);
  const std::optional<int> place = is_left_out ? free_place(state_, now_) : pending.place;
  if (!place) return because(no_place_is_free());
  if (is_held(*place) && now_ < pending.at_latest) return start_later(*place, {});
  if (is_held(*place)) {
    because(names_of([&](const Member& member) { return holds(member, *place); }) +
            " did not end in time, so a new process starts beside it");
  }
  start_process(*place);
}

void Decider::start_or_wait(int place) {
  if (!is_held(place)) return start_process(place);
  because("a new process starts on place " + std::to_string(place) + " when " +
          names_of([&](const Member& member) { return holds(member, place); }) + " is gone");
  start_later(place, {});
}

void Decider::start_later(int place, std::chrono::milliseconds pause) {
  state_.pending_starts.push_back(
      {.due = now_ + pause, .place = place, .at_latest = now_ + std::max(pause, state_.policy.restart.kill_timeout)});
}

void Decider::on_patience_lost() {
  const bool is_gathering = state_.phase == RunPhase::gathering && !state_.is_stop_requested;
  const std::string remaining = names_of([&](const Member& member) { return !is_gathering || holds_up(member); });
  state_.give_up_at.reset();
  because(remaining + " did not leave in time");
  if (state_.phase == RunPhase::ending) {
    return finish(kExitGaveUp, "gave up: " + remaining + " did not end within " +
                                   seconds(state_.policy.restart.kill_timeout) +
                                   " of SIGKILL; before that: " + state_.verdict->sentence);
  }
  if (state_.phase == RunPhase::finishing) return end_run(kExitFinished, "finished");
  if (!state_.is_stop_requested) return end_run(kExitGaveUp, "gave up: " + remaining + " cannot be killed");
  end_run(kExitStopped, "stopped as asked, but " + remaining + " had to be killed after " +
                            seconds(state_.policy.restart.stop_grace));
}

void Decider::on_member_event() {
  subject_ = find(event_.member);
  if (subject_ == nullptr || state_.phase == RunPhase::over) {
    return because(std::string(to_string(event_.kind)) + " of process " + std::to_string(event_.member) +
                   " is dropped: it is gone");
  }
  switch (event_.kind) {
    case EventKind::ready:
      return on_ready();
    case EventKind::checked_in:
      return on_checked_in();
    case EventKind::finished:
      return on_finished();
    case EventKind::failure_reported:
    case EventKind::hang_detected:
    case EventKind::device_failed:
      return on_failure(event_.what, true);
    case EventKind::slow:
      return on_slow();
    case EventKind::died:
      return on_died();
    case EventKind::start_failed:
      return on_start_failed();
    default:
      return on_exited();
  }
}

void Decider::on_ready() {
  because(name_of(*subject_) + " is ready");
  if (subject_->stage != Stage::starting) return because("but " + std::string(to_string(subject_->stage)));
  subject_->stage = Stage::ready;
  state_.was_any_ready = true;
  open_if_possible();
  regroup_if_that_changes_anything();
}

void Decider::on_checked_in() {
  if (subject_->stage != Stage::training || event_.generation != state_.generation) {
    return because(name_of(*subject_) + " checked in, but is " + std::string(to_string(subject_->stage)));
  }
  because(name_of(*subject_) + " waits for the next generation");
  subject_->stage = Stage::waiting;
  subject_->step = event_.step;
  if (state_.phase == RunPhase::running) {
    state_.is_end_unexplained = !state_.is_regroup_asked;
    // Also when it was asked to regroup: whoever is not at the step boundary yet would wait for this one in vain.
    cancel_generation();
    state_.phase = RunPhase::gathering;
  }
  open_if_possible();
}

// It may be the process or its place: a place that makes the next one slow too is to blame itself.
void Decider::on_slow() {
  because(name_of(*subject_) + " is slow, " + event_.what);
  if (subject_->stage != Stage::training || state_.phase != RunPhase::running) {
    return because("but no generation runs with it");
  }
  std::optional<Moment>& last = state_.places.at(subject_->place).slow_replaced_at;
  const bool is_again = last && now_ - *last < state_.policy.restart.restart_window;
  state_.places.at(subject_->place).is_slow = state_.places.at(subject_->place).is_slow || is_again;
  if (state_.places.at(subject_->place).is_slow) {
    return because("so was the one before it on place " + std::to_string(subject_->place) + ", so it stays");
  }
  if (state_.is_stop_requested) return because("the run is to stop, so it stays");
  if (!has_stage(state_, Stage::ready)) return because("it stays until a spare is ready");
  if (!allows_restart(state_.policy.restart, state_.history, now_))
    return because("it stays: " + limit() + " are spent");
  last = now_;
  because("a spare takes its place");
  fail("was slow: " + event_.what, true);
}

void Decider::on_finished() {
  if (is_newcomer(*subject_)) return fail("says that it has finished, but was in no generation", true);
  because(name_of(*subject_) + " has finished");
  if (was_killed(*subject_)) return because("too late");
  if (subject_->stage == Stage::finished) return because("which it had said before");
  subject_->stage = Stage::finished;
  ++state_.finished;
  if (is_ending()) return;
  if (nobody_is_left_to_finish()) return begin_to_finish();
  open_if_possible();
}

bool Decider::nobody_is_left_to_finish() const {
  if (has_any(state_, is_in_generation)) return false;
  return state_.phase == RunPhase::running || state_.finished >= state_.target;
}

void Decider::begin_to_finish() {
  because("all have; they have " + seconds(state_.policy.restart.stop_grace) + " to leave");
  state_.phase = RunPhase::finishing;
  state_.pending_starts.clear();
  dismiss_those_in({Stage::starting, Stage::ready});
  state_.give_up_at = now_ + state_.policy.restart.stop_grace;
}

void Decider::on_failure(const std::string& cause, bool is_explained) {
  // The program goes on after the end of its run, perhaps with a second run that nobody watches.
  if (subject_->stage == Stage::finished && event_.is_unrecoverable && state_.phase != RunPhase::ending) {
    is_of_a_failure_ = true;
    const std::string sentence = name_of(*subject_) + ": " + cause;
    return end_run(kExitUnrecoverable, sentence, sentence);
  }
  if (subject_->stage == Stage::finished || subject_->stage == Stage::leaving) {
    return because(name_of(*subject_) + " was " + std::string(to_string(subject_->stage)) +
                   ", so this changes nothing: " + cause);
  }
  if (subject_->stage == Stage::failed) return because(name_of(*subject_) + " had failed before: " + cause);
  fail(cause, is_explained);
}

void Decider::on_died() {
  if (state_.phase == RunPhase::ending) return because(name_of(*subject_) + " died, as it was to");
  on_failure("died without a report", false);
}

void Decider::on_start_failed() {
  on_failure("cannot be started: " + event_.what, true);
  remove_subject();
}

void Decider::on_exited() {
  const std::string how = describe_exit(event_);
  const bool is_expected = is_expected_exit();
  const bool is_explanation = is_expected && subject_->failure && !subject_->failure->is_explained;
  because(name_of(*subject_) + " is gone" + (is_explanation ? ": " + how : ""));
  if (is_explanation) explain_failure(how);
  if (!is_expected) fail(how, true);
  remove_subject();
}

// What was decided when it died was decided without knowing this.
void Decider::explain_failure(const std::string& how) {
  is_of_a_failure_ = true;
  Failure& failure = *subject_->failure;
  if (state_.verdict && state_.verdict->unexplained == subject_->id) {
    std::string& sentence = state_.verdict->sentence;
    sentence.replace(sentence.size() - failure.cause.size(), failure.cause.size(), how);
    state_.verdict->unexplained = -1;
  }
  failure.cause = how;
  failure.is_explained = true;
  if (blames_the_start()) give_up_starting(name_of(*subject_) + ": " + how);
}

bool Decider::is_expected_exit() const {
  if (subject_->stage == Stage::finished || subject_->stage == Stage::leaving || subject_->stage == Stage::failed)
    return true;
  const bool is_clean = event_.signal == 0 && (event_.exit_code == 0 || event_.exit_code == kExitStopped);
  return is_ending() || (state_.is_stop_requested && is_clean);
}

void Decider::remove_subject() {
  if (subject_->failure) record(*subject_);
  const int id = subject_->id;
  std::erase_if(state_.members, [id](const Member& member) { return member.id == id; });
  subject_ = nullptr;
  const bool is_gathering = state_.phase == RunPhase::gathering && !state_.is_stop_requested;
  const bool is_held_up = has_any(state_, [this](const Member& member) { return holds_up(member); });
  if (is_gathering && !is_held_up) state_.give_up_at.reset();
  if (is_gathering && state_.policy.all_start_together) start_what_is_due("those before them are gone");
  if (state_.policy.start_when_gone) start_what_is_due("its place is empty");
  conclude_if_all_are_gone();
  open_if_possible();
}

}  // namespace holdfast::recovery
