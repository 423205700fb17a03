#include <utility>

#include "decide/draft.h"
#include "holdfast/base/error.h"
#include "holdfast/recovery/watchdog.h"

namespace holdfast::recovery {

void on_ready(Draft& draft) {
  because(draft, name_of(subject(draft)) + " is ready");
  if (subject(draft).stage != Stage::starting)
    return because(draft, "but " + std::string(to_string(subject(draft).stage)));
  subject(draft).stage = Stage::ready;
  draft.state.was_any_ready = true;
  open_if_possible(draft);
  regroup_if_that_changes_anything(draft);
}

void on_checked_in(Draft& draft) {
  if (subject(draft).stage != Stage::training || draft.event.generation != draft.state.generation) {
    return because(draft,
                   name_of(subject(draft)) + " checked in, but is " + std::string(to_string(subject(draft).stage)));
  }
  because(draft, name_of(subject(draft)) + " waits for the next generation");
  subject(draft).stage = Stage::waiting;
  subject(draft).step = draft.event.step;
  if (draft.state.phase == RunPhase::running) {
    draft.state.is_end_unexplained = !draft.state.is_regroup_asked;
    // Also when it was asked to regroup: whoever is not at the step boundary yet would wait for this one in vain.
    cancel_generation(draft);
    draft.state.phase = RunPhase::gathering;
  }
  open_if_possible(draft);
}

// It may be the process or its place: a place that makes the next one slow too is to blame itself.
void on_slow(Draft& draft) {
  because(draft, name_of(subject(draft)) + " is slow, " + draft.event.what);
  if (subject(draft).stage != Stage::training || draft.state.phase != RunPhase::running) {
    return because(draft, "but no generation runs with it");
  }
  std::optional<Moment>& last = draft.state.places.at(subject(draft).place).slow_replaced_at;
  const bool is_again = last && draft.now - *last < draft.state.policy.recovery.restart_window;
  draft.state.places.at(subject(draft).place).is_slow = draft.state.places.at(subject(draft).place).is_slow || is_again;
  if (draft.state.places.at(subject(draft).place).is_slow) {
    return because(draft,
                   "so was the one before it on place " + std::to_string(subject(draft).place) + ", so it stays");
  }
  if (draft.state.is_stop_requested) return because(draft, "the run is to stop, so it stays");
  if (!has_stage(draft.state, Stage::ready)) return because(draft, "it stays until a spare is ready");
  if (!allows_restart(draft.state.policy.recovery, draft.state.history, draft.now))
    return because(draft, "it stays: " + restart_limit(draft) + " are spent");
  last = draft.now;
  because(draft, "a spare takes its place");
  fail_subject(draft, "was slow: " + draft.event.what, true);
}

void on_finished(Draft& draft) {
  if (is_newcomer(subject(draft)))
    return fail_subject(draft, "says that it has finished, but was in no generation", true);
  because(draft, name_of(subject(draft)) + " has finished");
  if (was_killed(subject(draft))) return because(draft, "too late");
  if (subject(draft).stage == Stage::finished) return because(draft, "which it had said before");
  subject(draft).stage = Stage::finished;
  ++draft.state.finished;
  if (is_ending(draft)) return;
  if (nobody_is_left_to_finish(draft)) return begin_to_finish(draft);
  open_if_possible(draft);
}

bool nobody_is_left_to_finish(const Draft& draft) {
  if (has_any(draft.state, is_in_generation)) return false;
  return draft.state.phase == RunPhase::running || draft.state.finished >= draft.state.target;
}

void begin_to_finish(Draft& draft) {
  because(draft, "all have; they have " + seconds(draft.state.policy.recovery.stop_grace) + " to leave");
  draft.state.phase = RunPhase::finishing;
  draft.state.pending_starts.clear();
  dismiss_those_in(draft, {Stage::starting, Stage::ready});
  draft.state.give_up_at = draft.now + draft.state.policy.recovery.stop_grace;
}

void on_failure(Draft& draft, const std::string& cause, bool is_explained) {
  // The program goes on after the end of its run, perhaps with a second run that nobody watches.
  if (subject(draft).stage == Stage::finished && draft.event.is_unrecoverable &&
      draft.state.phase != RunPhase::ending) {
    draft.is_of_a_failure = true;
    const std::string sentence = name_of(subject(draft)) + ": " + cause;
    return end_run(draft, kExitUnrecoverable, sentence, sentence);
  }
  if (subject(draft).stage == Stage::finished || subject(draft).stage == Stage::leaving) {
    return because(draft, name_of(subject(draft)) + " was " + std::string(to_string(subject(draft).stage)) +
                              ", so this changes nothing: " + cause);
  }
  if (subject(draft).stage == Stage::failed)
    return because(draft, name_of(subject(draft)) + " had failed before: " + cause);
  fail_subject(draft, cause, is_explained);
}

void on_died(Draft& draft) {
  if (draft.state.phase == RunPhase::ending) return because(draft, name_of(subject(draft)) + " died, as it was to");
  on_failure(draft, "died without a report", false);
}

void on_start_failed(Draft& draft) {
  on_failure(draft, "cannot be started: " + draft.event.what, true);
  remove_subject(draft);
}

void on_exited(Draft& draft) {
  const std::string how = describe_exit(draft.event);
  const bool is_expected = is_expected_exit(draft);
  const bool is_explanation = is_expected && subject(draft).failure && !subject(draft).failure->is_explained;
  because(draft, name_of(subject(draft)) + " is gone" + (is_explanation ? ": " + how : ""));
  if (is_explanation) explain_failure(draft, how);
  if (!is_expected) fail_subject(draft, how, true);
  remove_subject(draft);
}

// What was decided when it died was decided without knowing this.
void explain_failure(Draft& draft, const std::string& how) {
  draft.is_of_a_failure = true;
  Failure& failure = *subject(draft).failure;
  if (draft.state.verdict && draft.state.verdict->unexplained == subject(draft).id) {
    std::string& sentence = draft.state.verdict->sentence;
    sentence.replace(sentence.size() - failure.cause.size(), failure.cause.size(), how);
    draft.state.verdict->unexplained = -1;
  }
  failure.cause = how;
  failure.is_explained = true;
  if (blames_the_start(draft)) give_up_starting(draft, name_of(subject(draft)) + ": " + how);
}

bool is_expected_exit(const Draft& draft) {
  if (subject(draft).stage == Stage::finished || subject(draft).stage == Stage::leaving ||
      subject(draft).stage == Stage::failed)
    return true;
  const bool is_clean =
      draft.event.signal == 0 && (draft.event.exit_code == 0 || draft.event.exit_code == kExitStopped);
  return is_ending(draft) || (draft.state.is_stop_requested && is_clean);
}

void remove_subject(Draft& draft) {
  if (subject(draft).failure) record_failure(draft, subject(draft));
  const int id = subject(draft).id;
  std::erase_if(draft.state.members, [id](const Member& member) { return member.id == id; });
  draft.subject.reset();
  const bool is_gathering = draft.state.phase == RunPhase::gathering && !draft.state.is_stop_requested;
  const bool is_held_up = has_any(draft.state, [&draft](const Member& member) { return holds_up(draft, member); });
  if (is_gathering && !is_held_up) draft.state.give_up_at.reset();
  if (is_gathering && draft.state.policy.all_start_together) start_what_is_due(draft, "those before them are gone");
  if (draft.state.policy.starts_when_gone()) start_what_is_due(draft, "its place is empty");
  conclude_if_all_are_gone(draft);
  open_if_possible(draft);
}

}  // namespace holdfast::recovery
