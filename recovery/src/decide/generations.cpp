// When the next generation opens, and how the run ends. A generation opens once all survivors have checked in: with
// fewer replicas at once, since a new process may load data for minutes (WhenLost::shrink). A newcomer joins later, at
// a step boundary. See docs/decisions/recovery.md.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "decide/draft.h"
#include "holdfast/base/error.h"
#include "holdfast/recovery/exit_codes.h"

namespace holdfast::recovery {
namespace {

// Survivors go on without newcomers, unless when_lost is `wait`. Without survivors there is no state to go on with, so
// the generation waits until it is complete.
bool waits_for_more(const Draft& draft) {
  const int there = count_stage(draft.state, Stage::waiting) + count_stage(draft.state, Stage::ready);
  const bool is_more_expected = has_stage(draft.state, Stage::starting) || !draft.state.pending_starts.empty() ||
                                draft.state.hosts_awaited_until.has_value();
  if (there >= wanted(draft.state) || !is_more_expected || draft.state.is_stop_requested) return false;
  return !has_stage(draft.state, Stage::waiting) || draft.state.policy.recovery.when_lost == WhenLost::wait;
}

// Gathering has no members left: they were dismissed, or have finished.
void on_nobody_left(Draft& draft) {
  if (draft.state.is_stop_requested) return end_run(draft, {.exit_code = kExitStopped, .reason = stopped()});
  if (draft.state.finished > 0) return begin_to_finish(draft);
  end_run(draft, {.exit_code = kExitGaveUp, .reason = "gave up: no replica is left"});
}

// Counts as a restart: members that leave each generation without a failure would otherwise do so without end.
bool is_allowed_unexplained(Draft& draft) {
  const RecoveryOptions& options = draft.state.policy.recovery;
  if (allows_restart(options, draft.state.history, draft.now)) {
    draft.state.history = with_restart(options, std::move(draft.state.history), draft.now);
    draft.state.is_end_unexplained = false;
    return true;
  }
  end_run(draft,
          {.exit_code = kExitGaveUp,
           .reason = fmt::format("{}; the last time, replicas left generation {} although none of them had failed",
                                 budget_spent(options), draft.state.generation)});
  return false;
}

// Whether members on hosts that leave train together with others.
bool parts_from_a_host(const State& state) {
  const auto trains = [](const Member& member) { return member.stage == Stage::training; };
  return has_any(state, [&](const Member& member) { return trains(member) && is_on_leaving_host(state, member); }) &&
         has_any(state, [&](const Member& member) { return trains(member) && !is_on_leaving_host(state, member); });
}

std::vector<int> hosts_of(Draft& draft, const std::vector<int>& by_rank) {
  std::vector<int> hosts;
  if (draft.state.policy.hosts == 1) return hosts;
  for (const int id : by_rank) hosts.push_back(member_of(draft, id).host);
  return hosts;
}

// A process on a host whose fence has run out need not be waited for.
bool is_anyone_left(const Draft& draft) {
  return !std::all_of(draft.state.members.begin(), draft.state.members.end(), is_fenced);
}

void open_generation(Draft& draft, const std::vector<int>& by_rank) {
  // While the run stops, the time to save goes on from the request.
  if (!draft.state.is_stop_requested) draft.state.give_up_at.reset();
  draft.state.generation = draft.state.next_generation++;
  draft.state.phase = RunPhase::running;
  draft.state.is_regroup_asked = false;
  draft.state.is_end_unexplained = false;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    Member& member = member_of(draft, by_rank[rank]);
    // It has shown that starts work, so the pauses before further ones begin anew.
    if (is_newcomer(member)) draft.state.newcomers.without_progress = 0;
    member.rank = static_cast<int>(rank);
    member.stage = Stage::training;
  }
  dismiss_those_in(draft, {Stage::waiting});  // more survivors than wanted
  because(draft, "generation {} opens with {}", draft.state.generation, counted(by_rank.size(), "replica"));
  if (!draft.state.assignment.members.empty() && draft.state.assignment.members != by_rank) {
    because(draft, "shards are assigned evenly, since the members have changed");
    draft.state.assignment = {};
  }
  act(draft, {.kind = ActionKind::open_generation,
              .generation = draft.state.generation,
              .members = by_rank,
              .shards = draft.state.assignment.shards,
              .hosts = hosts_of(draft, by_rank)});
  if (draft.state.is_stop_requested) act(draft, {.kind = ActionKind::ask_to_stop});
  try_rested_slots(draft);
}

}  // namespace

void open_if_possible(Draft& draft) {
  if (draft.state.phase != RunPhase::gathering) return;
  if (has_stage(draft.state, Stage::training))
    return because(draft, "other replicas have not left their generation yet");
  part_hosts(draft);
  if (waits_for_more(draft)) return because(draft, "the next generation waits for new processes");
  const std::vector<int> members = members_of_the_next(draft.state);
  if (members.empty()) return on_nobody_left(draft);
  if (draft.state.is_end_unexplained && !draft.state.is_stop_requested && !is_allowed_unexplained(draft)) return;
  if (!has_any(draft.state, brings_state) && has_any(draft.state, could_still_write)) {
    // A killed process may still write to the files from which the state is loaded.
    if (!draft.state.give_up_at) draft.state.give_up_at = draft.now + draft.state.policy.restart.kill_timeout;
    return because(draft, "the next generation waits until killed processes are gone");
  }
  open_generation(draft, assigned_ranks(draft.state, members));
}

// A generation with too few replicas regroups when one is ready. One with too many regroups when fewer are wanted, and
// one with members on a host that leaves when others can go on.
void regroup_if_that_changes_anything(Draft& draft) {
  if (draft.state.phase != RunPhase::running || draft.state.is_regroup_asked || draft.state.is_stop_requested) return;
  const auto training = count_stage(draft.state, Stage::training);
  const bool can_grow = training < wanted(draft.state) && has_stage(draft.state, Stage::ready);
  const bool can_part = parts_from_a_host(draft.state);
  if (training == 0 || (!can_grow && !can_part && training <= wanted(draft.state))) return;
  because(draft, "the generation regroups at its next step");
  draft.state.is_regroup_asked = true;
  act(draft, {.kind = ActionKind::ask_to_regroup});
}

bool is_ending(const Draft& draft) {
  return draft.state.phase == RunPhase::finishing || draft.state.phase == RunPhase::ending;
}

void end_run(Draft& draft, RunEnding ending, const std::string& clause) {
  because(draft, clause.empty() ? sentence_of(ending) : clause);
  draft.state.ending = std::move(ending);
  if (draft.state.phase == RunPhase::running) cancel_generation(draft);
  draft.state.phase = RunPhase::ending;
  draft.state.pending_starts.clear();
  draft.state.hosts_awaited_until.reset();
  for (const Member& member : draft.state.members) {
    // No order reaches a member of a lost host. Its agent ends the generation there by itself.
    if ((member.id != draft.subject || !is_subject_gone(draft)) && member.stage != Stage::unreachable)
      act(draft, {.kind = ActionKind::kill_process, .member = member.id});
  }
  draft.state.give_up_at = draft.now + draft.state.policy.restart.kill_timeout;
  // An exit removes its subject after this, and concludes then.
  if (!draft.subject || !is_anyone_left(draft)) conclude_if_all_are_gone(draft);
}

void conclude_if_all_are_gone(Draft& draft) {
  if (draft.state.phase == RunPhase::ending && !is_anyone_left(draft)) {
    because(draft, "all processes are gone");
    return finish_run(draft, *draft.state.ending);
  }
  if (draft.state.phase == RunPhase::finishing && !is_anyone_left(draft)) {
    because(draft, "all processes are gone");
    return finish_run(draft, {.exit_code = kExitFinished, .reason = "finished"});
  }
  const bool is_stopping = draft.state.is_stop_requested && !is_ending(draft) && draft.state.phase != RunPhase::over;
  if (is_stopping && !is_anyone_left(draft)) return finish_run(draft, {.exit_code = kExitStopped, .reason = stopped()});
}

// Failures without an exit status are recorded now, with what is known about them.
void finish_run(Draft& draft, const RunEnding& ending) {
  draft.state.ending = ending;
  draft.state.phase = RunPhase::over;
  draft.state.give_up_at.reset();
  for (Member& member : draft.state.members) {
    if (member.failure) record_failure(draft, member);
  }
  act(draft, {.kind = ActionKind::finish, .exit_code = ending.exit_code, .text = sentence_of(ending)});
}

std::string stopped() {
  return "stopped as asked; start the same command again to go on";
}

void start_process(Draft& draft, int slot) {
  draft.state.members.push_back(
      {.id = draft.state.next_member++, .device_slot = slot, .host = draft.state.policy.host_of(slot)});
  const int id = draft.state.members.back().id;
  because(draft, "process {} starts", id);
  act(draft, {.kind = ActionKind::start_process, .member = id, .device_slot = slot});
  if (!draft.state.device_slots.at(slot).rest_ends) return;
  draft.device_slot_changes.push_back({.kind = DeviceSlotChange::Kind::tried, .device_slot = slot, .member = id});
}

void dismiss(Draft& draft, Member& member) {
  because(draft, "{} is dismissed", name_of(member));
  member.stage = Stage::leaving;
  act(draft, {.kind = ActionKind::kill_process, .member = member.id});
}

void dismiss_those_in(Draft& draft, std::initializer_list<Stage> stages) {
  for (Member& member : draft.state.members) {
    if (std::find(stages.begin(), stages.end(), member.stage) != stages.end()) dismiss(draft, member);
  }
}

void record_failure(Draft& draft, Member& member) {
  const Failure failure = *std::exchange(member.failure, std::nullopt);
  act(draft, {.kind = ActionKind::record_failure,
              .member = member.id,
              .generation = failure.generation,
              .rank = member.rank,
              .step = failure.step,
              .text = failure.cause,
              .cause_kind = failure.kind,
              .moment = failure.detected});
}

void set_timer(Draft& draft) {
  std::optional<Moment> next = draft.state.give_up_at;
  if (const auto until = draft.state.hosts_awaited_until) next = std::min(next.value_or(*until), *until);
  if (!must_wait_for_an_end(draft)) {
    for (const PendingStart& pending : draft.state.pending_starts) {
      next = std::min(next.value_or(start_of(draft, pending)), start_of(draft, pending));
    }
  }
  // The end of a rest matters only to a generation that lacks replicas or spares.
  const bool is_in_use = draft.state.phase == RunPhase::running && !draft.state.is_stop_requested;
  if (is_in_use && count_missing(draft.state) > 0) {
    if (const auto end = next_end_of_a_rest(draft.state, draft.now)) next = std::min(next.value_or(*end), *end);
  }
  if (next && next != draft.state.timer && draft.state.phase != RunPhase::over) {
    act(draft, {.kind = ActionKind::set_timer, .moment = *next});
  }
  // Remembered, so that the same moment is not set again by each event.
  draft.state.timer = next;
}

}  // namespace holdfast::recovery
