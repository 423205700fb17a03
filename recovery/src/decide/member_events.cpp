// Events of one member. A failure can be seen in several ways, often one after the other: by the life mutex, by a
// report of the process, by the exit status. The first one decides; the exit status adds the cause and removes the
// member.

#include <utility>

#include <fmt/format.h>

#include "decide/draft.h"
#include "holdfast/base/error.h"
#include "holdfast/recovery/exit_codes.h"

namespace holdfast::recovery {
namespace {

// In a running generation, all its members have finished then. In a cancelled one, a lost member may still need a
// successor, so the count decides.
bool nobody_is_left_to_finish(const Draft& draft) {
  if (has_any(draft.state, is_in_generation)) return false;
  return draft.state.phase == RunPhase::running || draft.state.finished >= draft.state.target;
}

// The death was decided on before its cause was known. This fills the cause in, and may blame the start after all.
void explain_failure(Draft& draft, const std::string& how) {
  draft.is_of_a_failure = true;
  Failure& failure = *subject(draft).failure;
  const bool is_the_last =
      draft.state.ending && draft.state.ending->failure && draft.state.ending->failure->member == subject(draft).id;
  if (is_the_last) draft.state.ending->failure->cause = how;
  failure.cause = how;
  failure.kind = CauseKind::exit_status;
  if (blames_the_start(draft)) {
    give_up_starting(draft, {.member = subject(draft).id, .who = name_of(subject(draft)), .cause = how});
  }
}

// Exit codes 0 and 75 are orderly only after a request to stop, or once the member has finished.
bool is_expected_exit(const Draft& draft) {
  if (subject(draft).stage == Stage::finished || subject(draft).stage == Stage::leaving ||
      subject(draft).stage == Stage::failed || subject(draft).stage == Stage::unreachable)
    return true;
  const bool is_clean =
      draft.event.signal == 0 && (draft.event.exit_code == 0 || draft.event.exit_code == kExitStopped);
  const bool may_leave = draft.state.is_stop_requested || is_on_leaving_host(draft.state, subject(draft));
  return is_ending(draft) || (may_leave && is_clean);
}

// The process is gone: its failure has no better cause to wait for, and what waited for its end may go on.
void remove_subject(Draft& draft) {
  if (subject(draft).failure) record_failure(draft, subject(draft));
  const int id = subject(draft).id;
  std::erase_if(draft.state.members, [id](const Member& member) { return member.id == id; });
  draft.subject.reset();
  go_on_without_the_gone(draft);
}

}  // namespace

void go_on_without_the_gone(Draft& draft) {
  const bool is_gathering = draft.state.phase == RunPhase::gathering && !draft.state.is_stop_requested;
  const bool is_held_up = has_any(draft.state, [&draft](const Member& member) { return holds_up(draft, member); });
  // What waited for this exit may go on: reading files, using the device's memory, the end of the run.
  if (is_gathering && !is_held_up) draft.state.give_up_at.reset();
  if (is_gathering && draft.state.policy.all_start_together) start_what_is_due(draft, "those before them are gone");
  if (draft.state.policy.starts_when_gone) start_what_is_due(draft, "its device slot is empty");
  conclude_if_all_are_gone(draft);
  open_if_possible(draft);
}

// A process may get ready after it was dismissed, since SIGKILL was still on its way.
void on_ready(Draft& draft) {
  because(draft, "{} is ready", name_of(subject(draft)));
  if (subject(draft).stage != Stage::starting)
    return because(draft, "but its stage is {}", to_string(subject(draft).stage));
  subject(draft).stage = Stage::ready;
  draft.state.was_any_ready = true;
  open_if_possible(draft);
  regroup_if_that_changes_anything(draft);
}

void on_checked_in(Draft& draft) {
  if (subject(draft).stage != Stage::training || draft.event.generation != draft.state.generation) {
    return because(draft, "{} checked in, but its stage is {}", name_of(subject(draft)),
                   to_string(subject(draft).stage));
  }
  because(draft, "{} waits for the next generation", name_of(subject(draft)));
  subject(draft).stage = Stage::waiting;
  subject(draft).step = draft.event.step;
  if (draft.state.phase == RunPhase::running) {
    draft.state.is_end_unexplained = !draft.state.is_regroup_asked;
    // Also after a request to regroup: a replica before the step boundary would wait for this one in vain.
    cancel_generation(draft);
    draft.state.phase = RunPhase::gathering;
  }
  open_if_possible(draft);
}

// The process or its device slot may be slow. When the next process there is slow, too, the slot is to blame, and
// replacing processes would only cost pauses.
void on_slow(Draft& draft) {
  because(draft, "{} is slow: {}", name_of(subject(draft)), draft.event.what);
  if (subject(draft).stage != Stage::training || draft.state.phase != RunPhase::running) {
    return because(draft, "but it is in no running generation");
  }
  DeviceSlot& slot = draft.state.device_slots.at(subject(draft).device_slot);
  const bool is_again =
      slot.slow_replaced_at && is_recent(draft.state.policy.recovery, *slot.slow_replaced_at, draft.now);
  slot.is_slow = slot.is_slow || is_again;
  if (slot.is_slow) {
    return because(draft, "the process before it on device slot {} was slow, too, so it stays",
                   subject(draft).device_slot);
  }
  if (draft.state.is_stop_requested) return because(draft, "the run is stopping, so it stays");
  // Without a successor even a slow replica does more than none.
  if (!has_stage(draft.state, Stage::ready)) return because(draft, "it stays until a spare is ready");
  if (!allows_restart(draft.state.policy.recovery, draft.state.history, draft.now)) {
    return because(draft, "it stays, since the limit of {} is reached", restart_limit(draft.state.policy.recovery));
  }
  slot.slow_replaced_at = draft.now;
  because(draft, "a spare takes its place");
  fail_subject(draft, fmt::format("was slow: {}", draft.event.what));
}

void on_finished(Draft& draft) {
  if (is_newcomer(subject(draft))) return fail_subject(draft, "says that it has finished, but was in no generation");
  because(draft, "{} has finished", name_of(subject(draft)));
  if (was_killed(subject(draft)) || subject(draft).stage == Stage::unreachable)
    return because(draft, "but that comes too late");
  if (subject(draft).stage == Stage::finished) return because(draft, "which it had already reported");
  subject(draft).stage = Stage::finished;
  ++draft.state.finished;
  if (is_ending(draft)) return;
  if (nobody_is_left_to_finish(draft)) return begin_to_finish(draft);
  open_if_possible(draft);
}

// Processes need some time to exit after their work. Those that did not train are not needed any more.
void begin_to_finish(Draft& draft) {
  because(draft, "all have finished; they have {} to leave", seconds(time_to_leave(draft)));
  draft.state.phase = RunPhase::finishing;
  draft.state.pending_starts.clear();
  dismiss_those_in(draft, {Stage::starting, Stage::ready});
  draft.state.give_up_at = draft.now + time_to_leave(draft);
}

void on_failure(Draft& draft, const std::string& cause, CauseKind kind) {
  // After its run has finished, the program goes on, perhaps with a second run without a watchdog.
  if (subject(draft).stage == Stage::finished && draft.event.is_unrecoverable &&
      draft.state.phase != RunPhase::ending) {
    draft.is_of_a_failure = true;
    return end_run(draft, {.exit_code = kExitUnrecoverable,
                           .failure = LastFailure{subject(draft).id, name_of(subject(draft)), cause}});
  }
  if (subject(draft).stage == Stage::finished || subject(draft).stage == Stage::leaving ||
      subject(draft).stage == Stage::unreachable) {
    return because(draft, "{} is already {}, so this changes nothing: {}", name_of(subject(draft)),
                   to_string(subject(draft).stage), cause);
  }
  if (subject(draft).stage == Stage::failed)
    return because(draft, "{} has already failed: {}", name_of(subject(draft)), cause);
  fail_subject(draft, cause, kind);
}

void on_died(Draft& draft) {
  if (draft.state.phase == RunPhase::ending) return because(draft, "{} died, as intended", name_of(subject(draft)));
  on_failure(draft, "died without a report", CauseKind::unknown);
}

void on_start_failed(Draft& draft) {
  on_failure(draft, fmt::format("cannot be started: {}", draft.event.what), CauseKind::reported);
  remove_subject(draft);
}

void on_exited(Draft& draft) {
  const std::string how = describe_exit(draft.event);
  const bool is_expected = is_expected_exit(draft);
  const bool is_explanation =
      is_expected && subject(draft).failure && subject(draft).failure->kind == CauseKind::unknown;
  because(draft, "{} is gone{}", name_of(subject(draft)), is_explanation ? ": " + how : "");
  if (is_explanation) explain_failure(draft, how);
  if (!is_expected) fail_subject(draft, how, CauseKind::exit_status);
  remove_subject(draft);
}

}  // namespace holdfast::recovery
