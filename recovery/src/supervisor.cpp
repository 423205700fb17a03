#include "supervisor.h"

#include <algorithm>
#include <utility>

#include "holdfast/base/error.h"
#include "holdfast/recovery/watchdog.h"
#include "membership.h"
#include "supervisor_text.h"

namespace holdfast::recovery {
namespace {

constexpr std::string_view kNoPlaceIsFree = "no other place is free, so the run goes on with fewer replicas";

bool is_of_the_run(EventKind kind) {
  return kind == EventKind::start || kind == EventKind::stop_requested || kind == EventKind::scale_requested ||
         kind == EventKind::deal_proposed || kind == EventKind::progressed || kind == EventKind::timer;
}

class Decider {
 public:
  Decider(const State& state, const Event& event, Moment now) : state_(state), event_(event), now_(now) {}

  Decision decide() {
    if (is_of_the_run(event_.kind)) {
      on_run_event();
    } else {
      on_member_event();
    }
    set_timer();
    return {std::move(state_), std::move(actions_), std::move(reason_)};
  }

 private:
  // --- events of the run

  void on_run_event() {
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
      case EventKind::progressed:
        return on_progressed();
      default:
        return on_timer();
    }
  }

  void on_start() {
    HOLDFAST_ASSERT(state_.phase == RunPhase::idle);
    because("the run starts with " + std::to_string(state_.target) + " replicas and " +
            std::to_string(state_.policy.spares) + " spares");
    state_.phase = RunPhase::gathering;
    for (int i = 0; i < state_.target + state_.policy.spares; ++i) start_process(i % state_.policy.places);
  }

  void on_progressed() {
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
  bool clears_place(const Member& member) {
    Place& place = state_.places.at(member.place);
    if (place.rest_ends && !is_on_trial(state_, member)) return false;
    place.failures = 0;
    if (!std::exchange(place.rest_ends, std::nullopt)) return false;
    because("place " + std::to_string(member.place) + " is used again: " + name_of(member) +
            " has trained a step there");
    return true;
  }

  void on_stop_requested() {
    because(signal_name(event_.signal) + " came");
    if (state_.phase == RunPhase::finishing) return end_run(kExitFinished, "finished");
    if (state_.phase == RunPhase::ending) return because("the run ends as soon as all processes are gone");
    if (state_.is_stop_requested) return end_run(kExitStopped, "stopped at once by a second signal");
    state_.is_stop_requested = true;
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

  void on_scale_requested() {
    if (event_.count < 1)
      return because(std::to_string(event_.count) + " replicas were asked for; at least 1 is needed");
    if (state_.is_stop_requested || is_ending()) return because("the run is ending, so it stays as it is");
    if (state_.policy.all_start_together) return because("all processes start together, so the run stays as it is");
    if (state_.phase == RunPhase::idle) return because("the run has not started yet, so it stays as it is");
    because(std::to_string(event_.count) + " replicas were asked for, there were to be " +
            std::to_string(state_.target));
    state_.target = event_.count;
    start_missing();
    try_rested_places();
    try_places_at_once();
    dismiss_surplus();
    regroup_if_that_changes_anything();
    open_if_possible();
  }

  // The members go on with it, and with their state, in a generation of their own.
  void on_deal_proposed() {
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

  // Those that no generation will need; members of the running one have to check in first.
  void dismiss_surplus() {
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

  void on_timer() {
    state_.timer.reset();
    if (state_.give_up_at && now_ >= *state_.give_up_at) return on_patience_lost();
    const bool is_any_due = start_what_is_due("the pause before a new process is over");
    if (!try_rested_places() && !is_any_due) return because("a timer that was replaced is dropped");
    open_if_possible();
  }

  bool start_what_is_due(const std::string& why) {
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

  Moment start_of(const PendingStart& pending) const {
    return is_held(pending.place) ? pending.at_latest : pending.due;
  }

  // By a killed process whose memory the next one there may need.
  bool is_held(int place) const {
    return state_.policy.start_when_gone && has_any(state_, [&](const Member& member) { return holds(member, place); });
  }

  bool holds(const Member& member, int place) const {
    const bool is_gone = &member == subject_ && is_subject_gone();
    return member.place == place && was_killed(member) && !is_gone;
  }

  bool must_wait_for_an_end() const { return state_.policy.all_start_together && has_any(state_, was_killed); }

  // Whose end the next generation may have to wait for.
  bool holds_up(const Member& member) const {
    return state_.policy.all_start_together ? was_killed(member) : could_still_write(member);
  }

  // The place may have been left out during the pause.
  void start_pending(const PendingStart& pending) {
    const bool is_left_out = is_resting(state_.places.at(pending.place), now_);
    const std::optional<int> place = is_left_out ? free_place(state_, now_) : pending.place;
    if (!place) return because(std::string(kNoPlaceIsFree));
    if (is_held(*place) && now_ < pending.at_latest) return start_later(*place, {});
    if (is_held(*place)) {
      because(names_of([&](const Member& member) { return holds(member, *place); }) +
              " did not end in time, so a new process starts beside it");
    }
    start_process(*place);
  }

  void start_or_wait(int place) {
    if (!is_held(place)) return start_process(place);
    because("a new process starts on place " + std::to_string(place) + " when " +
            names_of([&](const Member& member) { return holds(member, place); }) + " is gone");
    start_later(place, {});
  }

  void start_later(int place, std::chrono::milliseconds pause) {
    state_.pending_starts.push_back(
        {.due = now_ + pause, .place = place, .at_latest = now_ + std::max(pause, state_.policy.restart.kill_timeout)});
  }

  void on_patience_lost() {
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

  // --- events of a member

  void on_member_event() {
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

  void on_ready() {
    because(name_of(*subject_) + " is ready");
    if (subject_->stage != Stage::starting) return because("but " + std::string(to_string(subject_->stage)));
    subject_->stage = Stage::ready;
    open_if_possible();
    regroup_if_that_changes_anything();
  }

  void on_checked_in() {
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
  void on_slow() {
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

  void on_finished() {
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

  bool nobody_is_left_to_finish() const {
    if (has_any(state_, is_in_generation)) return false;
    return state_.phase == RunPhase::running || state_.finished >= state_.target;
  }

  void begin_to_finish() {
    because("all have; they have " + seconds(state_.policy.restart.stop_grace) + " to leave");
    state_.phase = RunPhase::finishing;
    state_.pending_starts.clear();
    dismiss_those_in({Stage::starting, Stage::ready});
    state_.give_up_at = now_ + state_.policy.restart.stop_grace;
  }

  void on_failure(const std::string& cause, bool is_explained) {
    if (subject_->stage == Stage::finished || subject_->stage == Stage::leaving) {
      return because(name_of(*subject_) + " was " + std::string(to_string(subject_->stage)) +
                     ", so this changes nothing: " + cause);
    }
    if (subject_->stage == Stage::failed) return because(name_of(*subject_) + " had failed before: " + cause);
    fail(cause, is_explained);
  }

  void on_died() {
    if (state_.phase == RunPhase::ending) return because(name_of(*subject_) + " died, as it was to");
    on_failure("died without a report", false);
  }

  void on_start_failed() {
    on_failure("cannot be started: " + event_.what, true);
    remove_subject();
  }

  void on_exited() {
    const std::string how = describe_exit(event_);
    because(name_of(*subject_) + " is gone");
    if (is_expected_exit()) {
      if (subject_->failure && !subject_->failure->is_explained) subject_->failure->cause = how;
    } else {
      fail(how, true);
    }
    remove_subject();
  }

  bool is_expected_exit() const {
    if (subject_->stage == Stage::finished || subject_->stage == Stage::leaving || subject_->stage == Stage::failed)
      return true;
    const bool is_clean = event_.signal == 0 && (event_.exit_code == 0 || event_.exit_code == kExitStopped);
    return is_ending() || (state_.is_stop_requested && is_clean);
  }

  void remove_subject() {
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

  // --- failure

  void fail(const std::string& cause, bool is_explained) {
    const std::string sentence = name_of(*subject_) + ": " + cause;
    because(sentence);
    const bool was_in_generation = is_in_generation(*subject_) || state_.policy.all_start_together;
    const bool was_training = subject_->stage == Stage::training;
    subject_->stage = Stage::failed;
    const bool is_of_the_newest = state_.phase == RunPhase::running;
    subject_->failure = Failure{.cause = cause,
                                .detected = now_,
                                .generation = is_of_the_newest ? state_.generation : state_.next_generation,
                                .step = event_.step,
                                .is_explained = is_explained};
    if (!is_subject_gone()) act({.kind = ActionKind::kill_process, .member = subject_->id});
    if (is_explained) record(*subject_);
    if (is_ending()) return;
    const bool is_spared = !was_in_generation || (state_.policy.keep_survivors && is_on_trial(state_, *subject_));
    const bool others_go_on = is_spared && has_any(state_, is_in_generation);
    const bool is_a_further_one = was_in_generation && state_.failed_generation == state_.generation;
    if (was_in_generation) state_.failed_generation = state_.generation;
    if (event_.is_unrecoverable && !others_go_on) {
      because("a new process would meet it again, so the run ends");
      return end_run(kExitUnrecoverable, sentence);
    }
    if (was_training && !others_go_on && blames_the_step()) {
      return end_run(kExitGaveUp, "gave up at step " + std::to_string(event_.step) + ", which failed " +
                                      std::to_string(state_.failures_of_step) +
                                      " times in different processes, the last time so: " + sentence);
    }
    if (was_in_generation) lose_generation();
    if (state_.is_stop_requested) return go_on_stopping(sentence);
    replace({.sentence = sentence, .others_go_on = others_go_on, .is_a_further_one = is_a_further_one});
  }

  bool is_subject_gone() const { return event_.kind == EventKind::exited || event_.kind == EventKind::start_failed; }

  // Of several that die at once in a step only the first counts: that is no sign that the step is to blame.
  bool blames_the_step() {
    if (event_.step < 0 || event_.is_joining) return false;
    if (state_.blamed_generation == state_.generation) return false;
    state_.blamed_generation = state_.generation;
    if (event_.step != state_.failed_step) state_.failures_of_step = 0;
    state_.failed_step = event_.step;
    return ++state_.failures_of_step >= state_.policy.failures_of_a_step;
  }

  void lose_generation() {
    if (state_.phase == RunPhase::running) cancel_generation();
    state_.phase = RunPhase::gathering;
    state_.is_end_unexplained = false;
    if (state_.policy.keep_survivors) return;
    if (state_.policy.all_start_together) return end_all_for_a_new_start();
    because("all go back to the newest savepoint, as the run's options ask");
    dismiss_those_in({Stage::training, Stage::waiting});
  }

  // What those that finished did counts no more.
  void end_all_for_a_new_start() {
    because("all start again together");
    dismiss_those_in({Stage::starting, Stage::ready, Stage::training, Stage::waiting});
    state_.finished = 0;
    state_.pending_starts.clear();
    state_.give_up_at = now_ + state_.policy.restart.kill_timeout;
  }

  void cancel_generation() { act({.kind = ActionKind::cancel_generation, .generation = state_.generation}); }

  void go_on_stopping(const std::string& sentence) {
    if (has_any(state_, is_in_generation)) return open_if_possible();
    end_run(kExitStopped, "stopped as asked, but not in order: " + sentence);
  }

  struct Loss {
    std::string sentence{};
    bool others_go_on = false;      // the lost one was a newcomer, or tried a place
    bool is_a_further_one = false;  // of a generation that lost one before
  };

  // A newcomer that fails while others go on has a budget of its own: however often it fails, that of the run is kept
  // for those that train, and their progress does not make it start again at once.
  void replace(const Loss& loss) {
    const RestartPolicy& policy = state_.policy.restart;
    RestartHistory& history = loss.others_go_on ? state_.newcomers : state_.history;
    blame_place(subject_->place);
    if (event_.is_unrecoverable) {
      because("a new process would meet it again, so the others go on without one");
      return open_if_possible();
    }
    if (!allows_restart(policy, history, now_)) {
      if (!loss.others_go_on) return end_run(kExitGaveUp, budget_spent() + "the last failure was " + loss.sentence);
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

  std::string limit() const {
    const RestartPolicy& policy = state_.policy.restart;
    return std::to_string(policy.max_restarts) + " restarts within " + seconds(policy.restart_window);
  }

  std::string budget_spent() const { return "gave up after " + limit() + "; "; }

  void blame_place(int place) {
    if (state_.policy.all_start_together) return;  // fewer would be no use
    Place& blamed = state_.places.at(place);
    const bool is_worn = ++blamed.failures >= state_.policy.failures_of_a_place || blamed.rest_ends;
    if (!is_worn || is_resting(blamed, now_) || count_usable_places(state_, now_) == 1) return;
    const std::string why = blamed.rest_ends ? " is left out again: the process that tried it failed"
                                             : " is left out: " + std::to_string(blamed.failures) +
                                                   " processes failed there one after the other";
    const std::chrono::milliseconds rest = rest_of_a_place(state_.policy, ++blamed.times_left_out);
    blamed.rest_ends = now_ + rest;
    blamed.first_on_trial = state_.next_member;
    because("place " + std::to_string(place) + why + "; it is tried again after " + seconds(rest));
  }

  // One for each that is missing, the failed one's place first.
  void start_what_is_missing(std::chrono::milliseconds pause) {
    const bool is_dealt_afresh =
        is_resting(state_.places.at(subject_->place), now_) || state_.policy.all_start_together;
    std::optional<int> place = is_dealt_afresh ? free_place(state_, now_) : subject_->place;
    for (int missing = count_missing(state_); missing > 0; --missing) {
      if (!place) return because(std::string(kNoPlaceIsFree));
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
  void start_missing() {
    while (count_missing(state_) > 0) {
      const std::optional<int> place = free_place(state_, now_);
      if (!place) return;
      start_or_wait(*place);
    }
  }

  // One newcomer for each, while the others train: so nobody waits for it, and its failure is no failure of the run.
  bool try_rested_places() {
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
  void try_places_at_once() {
    while (count_missing(state_) > 0) {
      const std::optional<int> place = resting_place(state_, now_);
      if (!place) return;
      because("place " + std::to_string(*place) + " is tried before its rest is over, since it is needed");
      state_.places.at(*place).rest_ends = now_;
      start_or_wait(*place);
    }
  }

  bool can_others_go_on() const {
    if (!has_any(state_, is_in_generation)) return false;
    const int missing = wanted(state_) - count_in_generation(state_);
    return state_.policy.when_lost == WhenLost::shrink || count_stage(state_, Stage::ready) >= missing;
  }

  // --- the next generation

  void open_if_possible() {
    if (state_.phase != RunPhase::gathering) return;
    if (has_stage(state_, Stage::training)) return because("others have not left their generation yet");
    if (waits_for_more()) return because("the next generation waits for new processes");
    const std::vector<int> members = members_of_the_next(state_);
    if (members.empty()) return on_nobody_left();
    if (state_.is_end_unexplained && !state_.is_stop_requested && !is_allowed_unexplained()) return;
    if (!has_any(state_, brings_state) && has_any(state_, could_still_write)) {
      // They might still write the files that the state is taken from.
      if (!state_.give_up_at) state_.give_up_at = now_ + state_.policy.restart.kill_timeout;
      return because("the next generation waits for the end of killed processes");
    }
    open(dealt_ranks(state_, members));
  }

  bool waits_for_more() const {
    const int there = count_stage(state_, Stage::waiting) + count_stage(state_, Stage::ready);
    const bool is_more_expected = has_stage(state_, Stage::starting) || !state_.pending_starts.empty();
    if (there >= wanted(state_) || !is_more_expected || state_.is_stop_requested) return false;
    return !has_stage(state_, Stage::waiting) || state_.policy.when_lost == WhenLost::wait;
  }

  void on_nobody_left() {
    if (state_.is_stop_requested) return end_run(kExitStopped, stopped());
    if (state_.finished > 0) return begin_to_finish();
    end_run(kExitGaveUp, "gave up: no replica is left");
  }

  // Members that leave their generations again and again, and none fails, would go on with that for ever.
  bool is_allowed_unexplained() {
    const RestartPolicy& policy = state_.policy.restart;
    if (allows_restart(policy, state_.history, now_)) {
      state_.history = with_restart(policy, std::move(state_.history), now_);
      state_.is_end_unexplained = false;
      return true;
    }
    end_run(kExitGaveUp, budget_spent() + "the last time replicas left generation " +
                             std::to_string(state_.generation) + ", and none of them had failed");
    return false;
  }

  void open(const std::vector<int>& by_rank) {
    if (!state_.is_stop_requested) state_.give_up_at.reset();
    state_.generation = state_.next_generation++;
    state_.phase = RunPhase::running;
    state_.is_regroup_asked = false;
    state_.is_end_unexplained = false;
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
      Member& member = *find(by_rank[rank]);
      if (is_newcomer(member)) state_.newcomers.without_progress = 0;
      member.rank = static_cast<int>(rank);
      member.stage = Stage::training;
    }
    dismiss_those_in({Stage::waiting});
    because("generation " + std::to_string(state_.generation) + " opens with " + std::to_string(by_rank.size()) +
            " replicas");
    if (!state_.deal.members.empty() && state_.deal.members != by_rank) {
      because("shards are dealt evenly, since its members are others");
      state_.deal = {};
    }
    act({.kind = ActionKind::open_generation,
         .generation = state_.generation,
         .members = by_rank,
         .shards = state_.deal.shards});
    if (state_.is_stop_requested) act({.kind = ActionKind::ask_to_stop});
    try_rested_places();
  }

  // A generation that lacks replicas regroups when one is ready, and one that has too many when fewer are wanted.
  void regroup_if_that_changes_anything() {
    if (state_.phase != RunPhase::running || state_.is_regroup_asked || state_.is_stop_requested) return;
    const auto training = count_stage(state_, Stage::training);
    const bool can_grow = training < wanted(state_) && has_stage(state_, Stage::ready);
    if (training == 0 || (!can_grow && training <= wanted(state_))) return;
    because("the generation regroups at its next step");
    state_.is_regroup_asked = true;
    act({.kind = ActionKind::ask_to_regroup});
  }

  // --- the end

  bool is_ending() const { return state_.phase == RunPhase::finishing || state_.phase == RunPhase::ending; }

  void end_run(int exit_code, const std::string& sentence) {
    because(sentence);
    state_.verdict = {exit_code, sentence};
    if (state_.phase == RunPhase::running) cancel_generation();
    state_.phase = RunPhase::ending;
    state_.pending_starts.clear();
    for (const Member& member : state_.members) {
      if (&member != subject_ || !is_subject_gone()) act({.kind = ActionKind::kill_process, .member = member.id});
    }
    state_.give_up_at = now_ + state_.policy.restart.kill_timeout;
    if (subject_ == nullptr || state_.members.empty()) conclude_if_all_are_gone();
  }

  void conclude_if_all_are_gone() {
    if (state_.phase == RunPhase::ending && state_.members.empty()) {
      because("all processes are gone");
      return finish(state_.verdict->exit_code, state_.verdict->sentence);
    }
    if (state_.phase == RunPhase::finishing && state_.members.empty()) {
      because("all processes are gone");
      return finish(kExitFinished, "finished");
    }
    const bool is_stopping = state_.is_stop_requested && !is_ending() && state_.phase != RunPhase::over;
    if (is_stopping && state_.members.empty()) return finish(kExitStopped, stopped());
  }

  void finish(int exit_code, const std::string& sentence) {
    state_.phase = RunPhase::over;
    state_.give_up_at.reset();
    for (Member& member : state_.members) {
      if (member.failure) record(member);
    }
    act({.kind = ActionKind::finish, .exit_code = exit_code, .text = sentence});
  }

  template <class Predicate>
  std::string names_of(const Predicate& predicate) const {
    std::string names;
    for (const Member& member : state_.members) {
      if (predicate(member)) names += (names.empty() ? "" : ", ") + full_name_of(member);
    }
    return names;
  }

  static std::string stopped() { return "stopped as asked; start the same command again to go on"; }

  // --- members

  void start_process(int place) {
    state_.members.push_back({.id = state_.next_member++, .place = place});
    const int id = state_.members.back().id;
    because("process " + std::to_string(id) + " starts");
    if (subject_ != nullptr) subject_ = find(event_.member);
    act({.kind = ActionKind::start_process, .member = id, .place = place});
  }

  void dismiss(Member& member) {
    because(name_of(member) + " is dismissed");
    member.stage = Stage::leaving;
    act({.kind = ActionKind::kill_process, .member = member.id});
  }

  void dismiss_those_in(std::initializer_list<Stage> stages) {
    for (Member& member : state_.members) {
      if (std::find(stages.begin(), stages.end(), member.stage) != stages.end()) dismiss(member);
    }
  }

  void record(Member& member) {
    const Failure failure = *std::exchange(member.failure, std::nullopt);
    act({.kind = ActionKind::record_failure,
         .member = member.id,
         .generation = failure.generation,
         .rank = member.rank,
         .step = failure.step,
         .text = failure.cause,
         .moment = failure.detected});
  }

  Member* find(int id) {
    const auto found =
        std::find_if(state_.members.begin(), state_.members.end(), [id](const Member& m) { return m.id == id; });
    return found == state_.members.end() ? nullptr : &*found;
  }

  // --- what is decided

  void set_timer() {
    std::optional<Moment> next = state_.give_up_at;
    if (!must_wait_for_an_end()) {
      for (const PendingStart& pending : state_.pending_starts) {
        next = std::min(next.value_or(start_of(pending)), start_of(pending));
      }
    }
    const bool is_in_use = state_.phase == RunPhase::running && !state_.is_stop_requested;
    if (is_in_use && count_missing(state_) > 0) {
      if (const auto end = next_end_of_a_rest(state_, now_)) next = std::min(next.value_or(*end), *end);
    }
    if (next && next != state_.timer && state_.phase != RunPhase::over) {
      act({.kind = ActionKind::set_timer, .moment = *next});
    }
    state_.timer = next;
  }

  void act(Action action) { actions_.push_back(std::move(action)); }

  void because(const std::string& clause) {
    if (reason_.ends_with(clause)) return;
    reason_ += (reason_.empty() ? "" : "; ") + clause;
  }

  State state_;
  const Event& event_;
  Moment now_;
  Member* subject_ = nullptr;  // whose event it is; empty for one of the run, and once it is gone
  std::vector<Action> actions_;
  std::string reason_;
};

}  // namespace

State initial_state(const SupervisorPolicy& policy, int first_generation) {
  State state;
  state.policy = policy;
  state.next_generation = first_generation;
  state.target = policy.replicas;
  state.places.resize(static_cast<std::size_t>(policy.places));
  return state;
}

Decision decide(const State& state, const Event& event, Moment now) {
  return Decider(state, event, now).decide();
}

}  // namespace holdfast::recovery
