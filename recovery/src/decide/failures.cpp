// What a failure costs. A step, a program that cannot start, or a device slot may be to blame; then a further restart
// would only hide the cause. Otherwise a new process replaces the lost one, within a budget of restarts.
// Newcomers have a budget of their own, so that their failures cost the training nothing.
// See docs/decisions/recovery.md.

#include <algorithm>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "decide/draft.h"
#include "holdfast/base/error.h"
#include "holdfast/recovery/exit_codes.h"

namespace holdfast::recovery {
namespace {

struct Loss {
  LastFailure failure{};
  bool others_go_on = false;      // the lost member was a newcomer, or tried a device slot
  bool is_a_further_one = false;  // its generation had already lost a member
};

// Counts a step once in a generation: several deaths at once do not show that the step is to blame.
bool blames_the_step(Draft& draft) {
  if (draft.event.step < 0 || draft.event.is_joining) return false;
  if (draft.state.blamed_generation == draft.state.generation) return false;
  draft.state.blamed_generation = draft.state.generation;
  if (draft.event.step != draft.state.failed_step) draft.state.failures_of_step = 0;
  draft.state.failed_step = draft.event.step;
  return ++draft.state.failures_of_step >= draft.state.policy.failures_of_a_step;
}

// The members that had finished start again with the others.
void end_all_for_a_new_start(Draft& draft) {
  because(draft, "all processes start again together");
  dismiss_those_in(draft, {Stage::starting, Stage::ready, Stage::training, Stage::waiting});
  draft.state.finished = 0;
  draft.state.pending_starts.clear();
  draft.state.give_up_at = draft.now + draft.state.policy.restart.kill_timeout;
}

void blame_slot(Draft& draft, int slot, const std::string& failure) {
  if (draft.state.policy.all_start_together) return;  // such a program needs all its processes
  DeviceSlot& blamed = draft.state.device_slots.at(slot);
  // On probation a single failure is enough, since the slot has failed before.
  const bool is_worn = ++blamed.failures >= draft.state.policy.failures_of_a_slot || blamed.rest_ends;
  if (!is_worn || is_resting(blamed, draft.now) || count_usable_slots(draft.state, draft.now) == 1) return;
  const bool is_of_a_trial = blamed.rest_ends.has_value();
  const std::string why = is_of_a_trial ? "the process that tried it failed"
                                        : fmt::format("{} in a row", counted(blamed.failures, "failure"));
  leave_out(
      draft,
      {.device_slot = slot, .member = subject(draft).id, .is_of_a_trial = is_of_a_trial, .failures = blamed.failures},
      why, failure);
}

// Whether survivors need not wait for the new process: they may go on with fewer, or enough spares are ready.
bool can_others_go_on(const Draft& draft) {
  if (!has_any(draft.state, is_in_generation)) return false;
  const int missing = wanted(draft.state) - count(draft.state, is_in_generation);
  return draft.state.policy.recovery.when_lost == WhenLost::shrink || count_stage(draft.state, Stage::ready) >= missing;
}

// The failed member's device slot, unless it cannot be used now.
std::optional<int> slot_for_successor(const Draft& draft) {
  const int slot = subject(draft).device_slot;
  const bool is_assigned_afresh = is_resting(draft.state.device_slots.at(slot), draft.now) ||
                                  is_away(draft.state, slot) || draft.state.policy.all_start_together;
  return is_assigned_afresh ? free_slot(draft.state, draft.now) : slot;
}

// A newcomer that fails while others go on has a budget of its own. Its failures leave the run's budget to the replicas
// that train, and their progress does not shorten its pause.
void replace_lost(Draft& draft, const Loss& loss) {
  const RecoveryOptions& options = draft.state.policy.recovery;
  RestartHistory& history = loss.others_go_on ? draft.state.newcomers : draft.state.history;
  blame_slot(draft, subject(draft).device_slot, sentence_of(loss.failure));
  if (draft.event.is_unrecoverable) {
    because(draft, "a new process would fail in the same way, so the others go on without one");
    return open_if_possible(draft);
  }
  if (!allows_restart(options, history, draft.now)) {
    if (!loss.others_go_on) {
      const std::string reason = budget_spent(options);
      return end_run(draft, {.exit_code = kExitGaveUp, .reason = reason, .failure = loss.failure}, reason);
    }
    because(draft, "the others go on without a new process: the limit of {} is reached", restart_limit(options));
    return open_if_possible(draft);
  }
  count_restart(draft, history, loss.is_a_further_one);
  start_what_is_missing(draft, slot_for_successor(draft), pause_before(draft.state.policy.restart, history));
  open_if_possible(draft);
}

}  // namespace

// Marks the subject as failed, and decides what follows. The first reason that applies wins: a failure that any new
// process would have, a program that cannot start, a step that fails each time. Otherwise the process is replaced.
void fail_subject(Draft& draft, const std::string& cause, CauseKind kind) {
  const LastFailure failure = {.member = subject(draft).id, .who = name_of(subject(draft)), .cause = cause};
  because(draft, sentence_of(failure));
  const bool was_in_generation = is_in_generation(subject(draft)) || draft.state.policy.all_start_together;
  const bool was_training = subject(draft).stage == Stage::training;
  const bool was_starting = subject(draft).stage == Stage::starting;
  subject(draft).stage = Stage::failed;
  draft.is_of_a_failure = true;
  const bool is_of_the_newest = draft.state.phase == RunPhase::running;
  subject(draft).failure =
      Failure{.cause = cause,
              .kind = kind,
              .detected = draft.now,
              .generation = is_of_the_newest ? draft.state.generation : draft.state.next_generation,
              .step = draft.event.step,
              .first_successor = was_starting ? draft.state.next_member : -1};
  if (!is_subject_gone(draft)) act(draft, {.kind = ActionKind::kill_process, .member = subject(draft).id});
  // Asked first, since record_failure() takes the failure from the member.
  const bool is_explained = kind != CauseKind::unknown;
  const bool is_the_start_to_blame = is_explained && blames_the_start(draft);
  if (is_explained) record_failure(draft, subject(draft));
  if (is_ending(draft)) return;

  // The others do not pay for a newcomer, nor for a trial of a device slot.
  const bool is_spared =
      !was_in_generation || (draft.state.policy.keep_survivors && is_on_trial(draft.state, subject(draft)));
  const bool others_go_on = is_spared && has_any(draft.state, is_in_generation);
  // Several deaths in one generation are one failure: they share a pause.
  const bool is_a_further_one = was_in_generation && draft.state.failed_generation == draft.state.generation;
  if (was_in_generation) draft.state.failed_generation = draft.state.generation;

  if (draft.event.is_unrecoverable && !others_go_on) {
    return end_run(draft, {.exit_code = kExitUnrecoverable, .failure = failure},
                   "a new process would fail in the same way, so the run ends");
  }
  if (is_the_start_to_blame) return give_up_starting(draft, failure);
  const bool is_of_the_device = draft.event.kind == EventKind::device_failed;
  if (was_training && !others_go_on && !is_of_the_device && blames_the_step(draft)) {
    const std::string reason = fmt::format("gave up at step {}, which failed {} times in different processes",
                                           draft.event.step, draft.state.failures_of_step);
    return end_run(draft, {.exit_code = kExitGaveUp, .reason = reason, .failure = failure}, reason);
  }

  if (was_in_generation) lose_generation(draft);
  if (draft.state.is_stop_requested) return go_on_stopping(draft, failure);
  replace_lost(draft, {.failure = failure, .others_go_on = others_go_on, .is_a_further_one = is_a_further_one});
}

bool is_kill(const Event& event) {
  return event.kind == EventKind::exited && event.signal == SIGKILL;
}

// How many starts in a row must end as this one before the run does. A process that the kernel kills where memory runs
// out is killed again each time, but a single SIGKILL may come from anybody.
int starts_that_must_fail(const Draft& draft) {
  return is_kill(draft.event) ? draft.state.policy.kills_of_a_start : draft.state.policy.failures_of_a_start;
}

// Before any process was ready, nothing shows that the program can start at all. An exception, an exit code or a crash
// that repeats at each start is the program's own, and so is a SIGKILL that repeats more often. A failed device and a
// failed system call are not: they may pass. A device slot on which no start has failed may still be well, so each must
// have had its failure.
bool blames_the_start(Draft& draft) {
  const Failure& failure = *subject(draft).failure;
  const bool is_its_own = draft.event.kind == EventKind::exited || draft.event.kind == EventKind::failure_reported;
  if (is_ending(draft) || draft.state.is_stop_requested || draft.state.was_any_ready) return false;
  if (failure.first_successor < 0 || !is_its_own) return false;
  DeviceSlot& slot = draft.state.device_slots.at(subject(draft).device_slot);
  // Kills are counted on their own: one from elsewhere says nothing about the program's failures.
  int DeviceSlot::*const count = is_kill(draft.event) ? &DeviceSlot::killed_starts : &DeviceSlot::failed_starts;
  if (!is_kill(draft.event) && failure.cause != slot.start_cause) slot.failed_starts = 0;
  if (slot.*count > 0 && subject(draft).id < slot.next_start) return false;
  if (!is_kill(draft.event)) {
    slot.start_cause = failure.cause;
    slot.killed_starts = 0;
  }
  slot.next_start = failure.first_successor;
  if (++(slot.*count) < starts_that_must_fail(draft)) return false;
  return std::none_of(draft.state.device_slots.begin(), draft.state.device_slots.end(),
                      [&draft, count](const DeviceSlot& other) {
                        const auto index = static_cast<int>(&other - draft.state.device_slots.data());
                        return other.*count == 0 && !is_resting(other, draft.now) && !is_away(draft.state, index);
                      });
}

void give_up_starting(Draft& draft, const LastFailure& failure) {
  std::string reason =
      fmt::format("gave up: no process has got ready, and {} starts failed in the same way, one after the other",
                  starts_that_must_fail(draft));
  std::string advice;
  if (is_kill(draft.event))
    advice = "; Linux sends SIGKILL where memory runs out (see dmesg): take a smaller batch or fewer replicas";
  reason += advice;
  end_run(draft,
          {.exit_code = kExitGaveUp, .reason = reason, .failure = failure, .is_of_starts = true, .advice = advice},
          reason);
}

void lose_generation(Draft& draft) {
  if (draft.state.phase == RunPhase::running) cancel_generation(draft);
  draft.state.phase = RunPhase::gathering;
  // The loss explains why the other members leave.
  draft.state.is_end_unexplained = false;
  if (draft.state.policy.keep_survivors) return;
  if (draft.state.policy.all_start_together) return end_all_for_a_new_start(draft);
  because(draft, "all replicas go back to the newest savepoint, as the run's options ask");
  dismiss_those_in(draft, {Stage::training, Stage::waiting});
}

void go_on_stopping(Draft& draft, const LastFailure& failure) {
  if (has_any(draft.state, is_in_generation)) return open_if_possible(draft);
  const std::string reason = "stopped as asked, but not in order";
  end_run(draft, {.exit_code = kExitStopped, .reason = reason, .failure = failure}, reason);
}

void start_what_is_missing(Draft& draft, std::optional<int> slot, std::chrono::milliseconds pause) {
  // Which host goes is not known yet. part_hosts() starts what is missing then.
  if (draft.state.cut) return;
  for (int missing = count_missing(draft.state); missing > 0; --missing) {
    if (!slot) {
      because(draft, no_slot_is_free());
      return try_slots_if_no_other_is_left(draft);
    }
    if (pause > std::chrono::milliseconds::zero()) {
      because(draft, "a new process starts in {}, since there was no progress after the last restart", seconds(pause));
      start_later(draft, *slot, pause);
    } else if (draft.state.policy.start_delay > std::chrono::milliseconds::zero() && can_others_go_on(draft)) {
      because(draft, "a new process starts in {}, after the others, which need not wait for it, have gone on",
              seconds(draft.state.policy.start_delay));
      start_later(draft, *slot, draft.state.policy.start_delay);
    } else if (must_wait_for_an_end(draft)) {
      start_later(draft, *slot, {});
    } else {
      start_or_wait(draft, *slot);
    }
    slot = free_slot(draft.state, draft.now);
  }
}

void cancel_generation(Draft& draft) {
  act(draft, {.kind = ActionKind::cancel_generation, .generation = draft.state.generation});
}

void count_restart(Draft& draft, RestartHistory& history, bool is_a_further_loss) {
  const RecoveryOptions& options = draft.state.policy.recovery;
  const int without_progress = history.without_progress;
  history = with_restart(options, std::move(history), draft.now);
  // Deaths at one moment would otherwise double the pause with each of them.
  if (is_a_further_loss) history.without_progress = without_progress;
  because(draft, "restart {} of at most {}", history.restarts.size(), restart_limit(options));
}

// `change` says which device slot and why; this fills in how often and for how long.
void leave_out(Draft& draft, DeviceSlotChange change, const std::string& why, const std::string& last_failure) {
  DeviceSlot& slot = draft.state.device_slots.at(change.device_slot);
  // Failures of long ago say nothing about a device that has worked since then.
  const std::optional<Moment> well_since = std::exchange(slot.well_since, std::nullopt);
  if (well_since && draft.now - *well_since >= draft.state.policy.longest_slot_rest) slot.times_left_out = 0;
  change.times_left_out = ++slot.times_left_out;
  change.rest = rest_of_a_slot(draft.state.policy, change.times_left_out);
  slot.rest_ends = draft.now + change.rest;
  slot.first_on_trial = draft.state.next_member;
  slot.why = last_failure.empty() ? why : with_last_failure(why, last_failure);
  draft.is_of_a_failure = true;
  because(draft, "device slot {} is left out{}{}; it is tried again after {}", change.device_slot,
          change.is_of_a_trial ? " again: " : ": ", why, seconds(change.rest));
  draft.device_slot_changes.push_back(change);
}

// Starts them without a pause, since no failure is the reason.
void start_missing(Draft& draft) {
  if (draft.state.cut) return;
  while (count_missing(draft.state) > 0) {
    const std::optional<int> slot = free_slot(draft.state, draft.now);
    if (!slot) return;
    start_or_wait(draft, *slot);
  }
}

// Only a process that trains a step there shows that a device is well again. One newcomer tries each device slot while
// the others train, so no replica waits for it and its failure costs the run nothing.
bool try_rested_slots(Draft& draft) {
  if (draft.state.phase != RunPhase::running || draft.state.is_stop_requested) return false;
  bool is_any_tried = false;
  while (count_missing(draft.state) > 0) {
    const std::optional<int> slot = slot_to_try(draft.state, draft.now);
    if (!slot) break;
    because(draft, "device slot {} has rested and is tried again", *slot);
    start_or_wait(draft, *slot);
    is_any_tried = true;
  }
  return is_any_tried;
}

// A user who asks for more replicas than there are usable device slots may know that a device is back.
void try_slots_at_once(Draft& draft) {
  while (count_missing(draft.state) > 0) {
    const std::optional<int> slot = resting_slot(draft.state, draft.now);
    if (!slot) return;
    because(draft, "device slot {} is tried before its rest is over, since it is needed", *slot);
    draft.state.device_slots.at(*slot).rest_ends = draft.now;
    start_or_wait(draft, *slot);
  }
}

// The last slot of a run is never left out. But the one that was kept in use may go with its host.
void try_slots_if_no_other_is_left(Draft& draft) {
  if (count_usable_slots(draft.state, draft.now) == 0) try_slots_at_once(draft);
}

std::string no_slot_is_free() {
  return "no other device slot is free, so the run goes on with fewer replicas";
}

}  // namespace holdfast::recovery
