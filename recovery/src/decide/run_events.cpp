// Events of the run: its start, progress, requests of the user, lost devices, and the timer. Starts that are due are
// here, too. On a device they may have to wait until a killed process is gone, since its memory may not hold both. See
// docs/decisions/failing-devices.md.

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "decide/draft.h"
#include "holdfast/base/error.h"
#include "holdfast/recovery/exit_codes.h"

namespace holdfast::recovery {
namespace {

// timeout(1) sends SIGTERM to its child and then to the child's group, and so do wrappers that pass signals on. That is
// one request, sent twice within microseconds. A person who asks again waits first.
constexpr std::chrono::seconds kSameWish(1);

// A plain program's processes start together only when none of those before them can be alive.
bool is_to_be_gone(const Member& member) {
  return was_killed(member) || (member.stage == Stage::unreachable && !member.is_fenced);
}

// The full names of the members for which `predicate` holds, with commas between them.
template <class Predicate>
std::string names_of(const Draft& draft, const Predicate& predicate) {
  std::string names;
  for (const Member& member : draft.state.members) {
    if (predicate(member)) names += (names.empty() ? "" : ", ") + full_name_of(member);
  }
  return names;
}

// The member has trained a step, which shows that its device slot is well. A member that was there before the slot was
// left out shows nothing new.
bool clears_slot(Draft& draft, const Member& member) {
  DeviceSlot& slot = draft.state.device_slots.at(member.device_slot);
  if (slot.rest_ends && !is_on_trial(draft.state, member)) return false;
  slot.failures = 0;
  if (!std::exchange(slot.rest_ends, std::nullopt)) return false;
  slot.well_since = draft.now;
  because(draft, "device slot {} is used again: {} has trained a step there", member.device_slot, name_of(member));
  draft.device_slot_changes.push_back(
      {.kind = DeviceSlotChange::Kind::used_again, .device_slot = member.device_slot, .member = member.id});
  return true;
}

bool holds_slot(const Draft& draft, const Member& member, int slot) {
  const bool is_gone = member.id == draft.subject && is_subject_gone(draft);
  return member.device_slot == slot && was_killed(member) && !is_gone;
}

std::string holders_of(const Draft& draft, int slot) {
  return names_of(draft, [&](const Member& member) { return holds_slot(draft, member, slot); });
}

// Whether a killed process still holds device memory that a new process on this slot may need.
bool is_held(const Draft& draft, int slot) {
  return draft.state.policy.starts_when_gone &&
         has_any(draft.state, [&](const Member& member) { return holds_slot(draft, member, slot); });
}

// The device slot may have been left out during the pause; then another one is taken.
void start_pending(Draft& draft, const PendingStart& pending) {
  const bool is_left_out = is_resting(draft.state.device_slots.at(pending.device_slot), draft.now) ||
                           is_away(draft.state, pending.device_slot);
  const std::optional<int> slot = is_left_out ? free_slot(draft.state, draft.now) : pending.device_slot;
  if (!slot) {
    because(draft, no_slot_is_free());
    return try_slots_if_no_other_is_left(draft);
  }
  if (is_held(draft, *slot) && draft.now < pending.at_latest) return start_later(draft, *slot, {});
  if (is_held(draft, *slot)) {
    because(draft, "{} did not end in time, so a new process starts next to it", holders_of(draft, *slot));
  }
  start_process(draft, *slot);
}

// give_up_at has passed. Which processes the run waited for depends on its phase.
void on_patience_lost(Draft& draft) {
  const bool is_gathering = draft.state.phase == RunPhase::gathering && !draft.state.is_stop_requested;
  const std::string remaining = names_of(
      draft, [&](const Member& member) { return is_gathering ? holds_up(draft, member) : !is_fenced(member); });
  draft.state.give_up_at.reset();
  because(draft, "{} did not leave in time", remaining);
  // The kernel may hold a killed process in a system call for minutes. Nobody can end it then, so the run waits no
  // longer.
  if (draft.state.phase == RunPhase::ending) {
    const RunEnding& before = *draft.state.ending;
    const std::string reason = fmt::format("gave up: {} did not end within {} of SIGKILL", remaining,
                                           seconds(draft.state.policy.restart.kill_timeout));
    return finish_run(
        draft, {.exit_code = kExitGaveUp,
                .reason = before.reason.empty() ? reason : fmt::format("{}; before that: {}", reason, before.reason),
                .failure = before.failure});
  }
  // Their work is done. That a process does not exit by itself takes nothing from the result.
  if (draft.state.phase == RunPhase::finishing)
    return end_run(draft, {.exit_code = kExitFinished, .reason = "finished"});
  if (!draft.state.is_stop_requested)
    return end_run(draft, {.exit_code = kExitGaveUp, .reason = fmt::format("gave up: {} cannot be killed", remaining)});
  end_run(draft, {.exit_code = kExitStopped,
                  .reason = fmt::format("stopped as asked, but {} had to be killed after {}", remaining,
                                        seconds(time_to_leave(draft)))});
}

}  // namespace

void on_start(Draft& draft) {
  HOLDFAST_ASSERT(draft.state.phase == RunPhase::idle);
  because(draft, "the run starts with {} and {}", counted(draft.state.target, "replica"),
          counted(spares(draft.state), "spare"));
  draft.state.phase = RunPhase::gathering;
  for (int i = 0; i < draft.state.target + spares(draft.state); ++i) {
    const int slot = i % draft.state.policy.device_slots;
    // Processes of a host that has not joined yet are started by on_host_joined().
    if (!is_away(draft.state, slot)) start_process(draft, slot);
  }
  const bool is_any_awaited = std::any_of(draft.state.hosts.begin(), draft.state.hosts.end(),
                                          [](const Host& host) { return host.stage == Host::Stage::awaited; });
  if (!is_any_awaited) return;
  because(draft, "the other hosts have {} to join", seconds(draft.state.policy.join_timeout));
  draft.state.hosts_awaited_until = draft.now + draft.state.policy.join_timeout;
}

void on_progressed(Draft& draft) {
  if (draft.event.generation != draft.state.generation)
    return because(draft, "progress of an earlier generation is dropped");
  because(draft, "the run got further than ever before");
  draft.state.has_progressed = true;
  draft.state.history.without_progress = 0;
  // The run has got past the step that failed, so the step itself was not to blame.
  if (draft.event.step > draft.state.failed_step) draft.state.failures_of_step = 0;
  bool is_any_back = false;
  for (const Member& member : draft.state.members) {
    if (member.stage == Stage::training && clears_slot(draft, member)) is_any_back = true;
  }
  if (is_any_back && draft.state.phase == RunPhase::running && !draft.state.is_stop_requested) start_missing(draft);
}

void on_stop_requested(Draft& draft) {
  because(draft, "received {}", signal_name(draft.event.signal));
  // All work is done, so nothing has to be saved before the rest is ended.
  if (draft.state.phase == RunPhase::finishing)
    return end_run(draft, {.exit_code = kExitFinished, .reason = "finished"});
  if (draft.state.phase == RunPhase::ending) return because(draft, "the run ends as soon as all processes are gone");
  if (draft.state.is_stop_requested && draft.now - draft.state.stop_requested_at < kSameWish) {
    return because(draft, "it follows the first signal within {}, so it counts as the same request",
                   seconds(kSameWish));
  }
  if (draft.state.is_stop_requested) {
    return end_run(draft, {.exit_code = kExitStopped, .reason = "stopped at once by a second signal"});
  }
  draft.state.is_stop_requested = true;
  draft.state.stop_requested_at = draft.now;
  draft.state.pending_starts.clear();
  draft.state.hosts_awaited_until.reset();
  if (draft.state.phase == RunPhase::idle || !has_any(draft.state, is_in_generation)) {
    because(draft, "no replica has anything to save");
    return end_run(draft, {.exit_code = kExitStopped, .reason = stopped()});
  }
  because(draft, "replicas have {} to save and leave", seconds(time_to_leave(draft)));
  // Newcomers have no state that could be saved.
  dismiss_those_in(draft, {Stage::starting, Stage::ready});
  act(draft, {.kind = ActionKind::ask_to_stop});
  draft.state.give_up_at = draft.now + time_to_leave(draft);
  open_if_possible(draft);
}

void on_scale_requested(Draft& draft) {
  if (draft.event.count < 1)
    return because(draft, "{} replicas were requested; at least 1 is needed", draft.event.count);
  if (draft.state.is_stop_requested || is_ending(draft)) return because(draft, "the run is ending, so nothing changes");
  if (draft.state.policy.all_start_together)
    return because(draft, "all processes start together, so their number stays as it is");
  if (draft.state.phase == RunPhase::idle) return because(draft, "the run has not started yet, so nothing changes");
  because(draft, "{} replicas were requested instead of {}", draft.event.count, draft.state.target);
  draft.state.target = draft.event.count;
  start_missing(draft);
  try_rested_slots(draft);
  try_slots_at_once(draft);
  dismiss_surplus(draft);
  regroup_if_that_changes_anything(draft);
  open_if_possible(draft);
}

// Another assignment of shards needs another generation of the same members: ranks with different assignments would
// leave out a shard, or add it twice.
void on_assignment_proposed(Draft& draft) {
  if (draft.event.generation != draft.state.generation || draft.state.phase != RunPhase::running) {
    return because(draft, "an assignment for a generation that has ended is dropped");
  }
  because(draft, draft.event.what);
  if (draft.state.is_stop_requested) return because(draft, "the run is stopping, so shards stay as they are");
  if (draft.state.is_regroup_asked)
    return because(draft, "the generation regroups already, so shards stay as they are");
  std::vector<int> by_rank = training_by_rank(draft.state);
  if (by_rank.size() != draft.event.shards.size())
    return because(draft, "some replicas have finished, so shards stay as they are");
  draft.state.assignment = {.members = std::move(by_rank), .shards = draft.event.shards};
  because(draft, "shards are reassigned at the next step");
  draft.state.is_regroup_asked = true;
  act(draft, {.kind = ActionKind::ask_to_regroup});
}

// The driver reports the lost device, so no further process has to fail there. Members on it fail by events of their
// own.
void on_slot_lost(Draft& draft) {
  because(draft, "device slot {} is lost: {}", draft.event.device_slot, draft.event.what);
  if (is_ending(draft)) return because(draft, "the run is ending, so nothing changes");
  if (is_resting(draft.state.device_slots.at(draft.event.device_slot), draft.now))
    return because(draft, "it is already left out");
  if (draft.state.policy.all_start_together || count_usable_slots(draft.state, draft.now) == 1) {
    return because(draft, "no other could replace it, so it stays in use");
  }
  leave_out(draft, {.device_slot = draft.event.device_slot, .device = draft.event.what}, draft.event.what, "");
  for (PendingStart& pending : draft.state.pending_starts) {
    if (pending.device_slot == draft.event.device_slot)
      pending.device_slot = free_slot(draft.state, draft.now).value_or(pending.device_slot);
  }
}

// No replica gets time to save: its savepoint would be taken for one of the other run.
void on_directory_lost(Draft& draft) {
  if (draft.state.phase == RunPhase::ending) return because(draft, "{}; the run is already ending", draft.event.what);
  end_run(draft, {.exit_code = kExitUnrecoverable, .reason = draft.event.what});
}

void on_timer(Draft& draft) {
  draft.state.timer.reset();
  if (draft.state.give_up_at && draft.now >= *draft.state.give_up_at) return on_patience_lost(draft);
  if (draft.state.hosts_awaited_until && draft.now >= *draft.state.hosts_awaited_until) return on_hosts_missing(draft);
  const bool is_any_due = start_what_is_due(draft, "the pause before a new process is over");
  if (!try_rested_slots(draft) && !is_any_due) return because(draft, "a timer that was replaced is dropped");
  open_if_possible(draft);
}

// False when nothing is due, or when all processes have to start together and one of the old ones is not gone.
bool start_what_is_due(Draft& draft, const std::string& why) {
  if (must_wait_for_an_end(draft)) {
    because(draft, "new processes wait until those before them are gone");
    return false;
  }
  // They are taken out of the list first, because a start that has to wait is put into it again.
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

// When the start is due. On a device slot that a killed process still holds, it is the latest moment.
Moment start_of(const Draft& draft, const PendingStart& pending) {
  return is_held(draft, pending.device_slot) ? pending.at_latest : pending.due;
}

std::chrono::milliseconds time_to_leave(const Draft& draft) {
  return draft.state.policy.recovery.stop_grace;
}

bool must_wait_for_an_end(const Draft& draft) {
  return draft.state.policy.all_start_together && has_any(draft.state, is_to_be_gone);
}

// Dismisses newcomers that no generation will need. Members of the running generation have to check in first.
void dismiss_surplus(Draft& draft) {
  const auto is_surplus = [&draft] {
    return count_able(draft.state) - count(draft.state, is_in_generation) >
           std::max(0, wanted(draft.state) - count(draft.state, is_in_generation)) + spares(draft.state);
  };
  // Pending starts go first, then the youngest processes. Those of a host that is back may have the only state.
  while (is_surplus() && !draft.state.pending_starts.empty()) draft.state.pending_starts.pop_back();
  for (const Stage stage : {Stage::starting, Stage::ready}) {
    std::vector<Member*> youngest_first;
    for (auto member = draft.state.members.rbegin(); member != draft.state.members.rend(); ++member) {
      if (member->stage == stage) youngest_first.push_back(&*member);
    }
    std::stable_sort(youngest_first.begin(), youngest_first.end(),
                     [](const Member* a, const Member* b) { return a->step < b->step; });
    for (Member* member : youngest_first) {
      if (is_surplus()) dismiss(draft, *member);
    }
  }
}

// Whether the next generation may have to wait until this member is gone.
bool holds_up(const Draft& draft, const Member& member) {
  return draft.state.policy.all_start_together ? is_to_be_gone(member) : could_still_write(member);
}

// Starts a process at once, unless a killed process still holds the device slot.
void start_or_wait(Draft& draft, int slot) {
  if (!is_held(draft, slot)) return start_process(draft, slot);
  because(draft, "a new process starts on device slot {} when {} is gone", slot, holders_of(draft, slot));
  start_later(draft, slot, {});
}

// There is a latest moment, or a process that the kernel cannot end would keep its successor away without end.
void start_later(Draft& draft, int slot, std::chrono::milliseconds pause) {
  draft.state.pending_starts.push_back(
      {.due = draft.now + pause,
       .device_slot = slot,
       .at_latest = draft.now + std::max(pause, draft.state.policy.restart.kill_timeout)});
}

}  // namespace holdfast::recovery
