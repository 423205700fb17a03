// Hosts of a run that has several. A lost host is one failure, however many members it had: survivors go on without it,
// at once. Its members may live, and may even go on for a while, but no generation that they could be in has all its
// members. What they could still do is write files, until the fence of their agent has run out. When the host is back,
// those that live join again like newcomers. Two hosts may also lose each other alone. Then the run goes on without one
// of them, whose device slots are left out for a while. docs/decisions/lost-hosts.md

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "decide/draft.h"
#include "holdfast/base/error.h"
#include "holdfast/recovery/exit_codes.h"

namespace holdfast::recovery {
namespace {

Host& host_of(Draft& draft) {
  return draft.state.hosts.at(static_cast<std::size_t>(draft.event.host));
}

bool is_of_the_host(const Draft& draft, const Member& member) {
  return member.host == draft.event.host;
}

// Hosts without which the run has not started yet. It begins with all its hosts, so one that joined and was lost before
// the first generation is missing, too.
std::vector<int> missing_at_the_start(const Draft& draft) {
  std::vector<int> missing;
  for (std::size_t host = 0; host < draft.state.hosts.size(); ++host) {
    const Host::Stage stage = draft.state.hosts[host].stage;
    const bool is_missing = stage == Host::Stage::awaited || (stage == Host::Stage::lost && draft.state.generation < 0);
    if (is_missing) missing.push_back(static_cast<int>(host));
  }
  return missing;
}

// A pending start counts as a member. On a host that is away it would keep the run from starting one elsewhere.
void drop_starts_on(Draft& draft, int host) {
  std::erase_if(draft.state.pending_starts,
                [&](const PendingStart& pending) { return draft.state.policy.host_of(pending.device_slot) == host; });
}

// Members that are gone with their host, or that their host does not know any more.
template <class Predicate>
void forget(Draft& draft, const Predicate& predicate) {
  for (Member& member : draft.state.members) {
    if (predicate(member) && member.failure) record_failure(draft, member);
  }
  std::erase_if(draft.state.members, predicate);
}

// Returns whether the generation has lost a member with it.
bool lose_sight_of_members(Draft& draft, const std::string& cause) {
  const bool is_of_the_newest = draft.state.phase == RunPhase::running;
  bool was_any_in_generation = false;
  for (Member& member : draft.state.members) {
    if (!is_of_the_host(draft, member) || !is_able(member)) continue;
    if (is_in_generation(member)) {
      was_any_in_generation = true;
      member.failure = Failure{.cause = cause,
                               .detected = draft.now,
                               .generation = is_of_the_newest ? draft.state.generation : draft.state.next_generation};
      record_failure(draft, member);
    }
    // A newcomer gets here without a failure, because no generation waited for it.
    member.stage = Stage::unreachable;
    // The state may be lost until the host is back. The host then says which step it has.
    member.step = -1;
  }
  return was_any_in_generation;
}

// Others may have room for its members. Usually they have not, and the run goes on with fewer.
void go_on_elsewhere(Draft& draft, const std::string& sentence, bool is_a_further_loss) {
  const RecoveryOptions& options = draft.state.policy.recovery;
  if (!allows_restart(options, draft.state.history, draft.now)) {
    const std::string reason = budget_spent(options);
    return end_run(draft, {.exit_code = kExitGaveUp, .reason = reason, .failure = LastFailure{.cause = sentence}},
                   reason);
  }
  count_restart(draft, draft.state.history, is_a_further_loss);
  try_slots_if_no_other_is_left(draft);
  start_what_is_missing(draft, free_slot(draft.state, draft.now),
                        pause_before(draft.state.policy.restart, draft.state.history));
  open_if_possible(draft);
}

std::string sentence_about(const HostsCut& cut) {
  return fmt::format("host {} and host {} have no connection with each other: {}", cut.one, cut.other, cut.why);
}

// Whether all processes of one of the two hosts only try the device slots there. A trial costs the run no restart.
bool is_of_a_trial(const State& state, const HostsCut& cut) {
  const auto is_tried = [&state](int host) {
    return std::all_of(state.members.begin(), state.members.end(), [&](const Member& member) {
      return member.host != host || !is_in_generation(member) || is_on_trial(state, member);
    });
  };
  return is_tried(cut.one) || is_tried(cut.other);
}

// A process of the host that goes. It has done nothing wrong, but no generation can have it.
void end_for_the_cut(Draft& draft, Member& member, const std::string& sentence) {
  member.failure =
      Failure{.cause = sentence,
              .detected = draft.now,
              .generation = is_in_generation(member) ? draft.state.generation : draft.state.next_generation};
  member.stage = Stage::failed;
  act(draft, {.kind = ActionKind::kill_process, .member = member.id});
  record_failure(draft, member);
}

// As where a device fails: they rest, and then a process tries each of them. With a connection it trains there again.
void leave_out_slots_of(Draft& draft, int host, const std::vector<DeviceSlotChange>& changes,
                        const std::string& sentence) {
  for (int slot = 0; slot < draft.state.policy.device_slots; ++slot) {
    DeviceSlot& of_host = draft.state.device_slots.at(static_cast<std::size_t>(slot));
    if (draft.state.policy.host_of(slot) != host || is_resting(of_host, draft.now)) continue;
    const auto used = std::find_if(changes.begin(), changes.end(),
                                   [slot](const DeviceSlotChange& change) { return change.device_slot == slot; });
    DeviceSlotChange change = used == changes.end() ? changes.front() : *used;
    change.device_slot = slot;
    change.failures = ++of_host.failures;
    leave_out(draft, change, sentence, "");
  }
}

}  // namespace

void on_host_joined(Draft& draft) {
  if (host_of(draft).stage != Host::Stage::awaited) {
    return because(draft, "host {} has joined, but it is known already", draft.event.host);
  }
  host_of(draft).stage = Host::Stage::there;
  because(draft, "host {} has joined the run", draft.event.host);
  if (missing_at_the_start(draft).empty()) draft.state.hosts_awaited_until.reset();
  // on_start() starts its processes together with all others.
  if (draft.state.phase == RunPhase::idle) return;
  if (is_ending(draft) || draft.state.is_stop_requested) {
    return because(draft, "the run is ending, so nothing starts there");
  }
  start_missing(draft);
  open_if_possible(draft);
}

// The head does not outlive its own host, so this is never host 0.
void on_host_lost(Draft& draft) {
  HOLDFAST_ASSERT(draft.event.host > 0);
  const std::string sentence = fmt::format("host {} is lost: {}", draft.event.host, draft.event.what);
  because(draft, sentence);
  Host& host = host_of(draft);
  if (host.stage != Host::Stage::there && host.stage != Host::Stage::leaving) {
    return because(draft, "it was not part of the run");
  }
  if (host.stage == Host::Stage::there) {
    host.away_since = draft.now;
    host.why_away = draft.event.what;
  }
  host.stage = Host::Stage::lost;
  draft.is_of_a_failure = true;
  drop_starts_on(draft, draft.event.host);
  const bool was_any_in_generation = lose_sight_of_members(draft, sentence);
  if (is_ending(draft)) return because(draft, "the run is ending, so nothing changes");
  const bool is_a_further_loss = draft.state.failed_generation == draft.state.generation;
  if (was_any_in_generation) {
    draft.state.failed_generation = draft.state.generation;
    lose_generation(draft);
  }
  if (draft.state.is_stop_requested) return go_on_stopping(draft, {.cause = sentence});
  if (was_any_in_generation) return go_on_elsewhere(draft, sentence, is_a_further_loss);
  // The run has not begun, so the host gets the time to join once more.
  if (draft.state.generation < 0) {
    because(draft, "it has {} to join again", seconds(draft.state.policy.join_timeout));
    draft.state.hosts_awaited_until = draft.now + draft.state.policy.join_timeout;
  }
  try_slots_if_no_other_is_left(draft);
  start_missing(draft);
  open_if_possible(draft);
}

void on_fence_passed(Draft& draft) {
  Host& host = host_of(draft);
  if (host.stage != Host::Stage::lost || std::exchange(host.is_fenced, true)) {
    return because(draft, "the fence of host {} has run out, which changes nothing", draft.event.host);
  }
  because(draft, "nothing on host {} trains or writes any more", draft.event.host);
  for (Member& member : draft.state.members) {
    if (is_of_the_host(draft, member)) member.is_fenced = true;
  }
  // It had ended them, or they had ended, and nobody will tell.
  // Members out of reach stay in the list. Their host may come back, and they may have states.
  forget(draft, [&draft](const Member& member) {
    return is_of_the_host(draft, member) && member.stage != Stage::unreachable;
  });
  go_on_without_the_gone(draft);
}

void on_host_returned(Draft& draft) {
  HOLDFAST_ASSERT(draft.event.members.size() == draft.event.steps.size());
  if (host_of(draft).stage != Host::Stage::lost) {
    return because(draft, "host {} is back, but it was not lost", draft.event.host);
  }
  host_of(draft) = {.stage = Host::Stage::there};
  because(draft, "host {} is back with {}", draft.event.host, counted(draft.event.members.size(), "member"));
  if (missing_at_the_start(draft).empty()) draft.state.hosts_awaited_until.reset();
  const auto index_of = [&draft](const Member& member) {
    const auto found = std::find(draft.event.members.begin(), draft.event.members.end(), member.id);
    return static_cast<std::size_t>(found - draft.event.members.begin());
  };
  forget(draft, [&](const Member& member) {
    return is_of_the_host(draft, member) && index_of(member) == draft.event.members.size();
  });
  const bool is_needed = !is_ending(draft) && !draft.state.is_stop_requested;
  for (Member& member : draft.state.members) {
    if (!is_of_the_host(draft, member)) continue;
    member.is_fenced = false;
    if (member.stage == Stage::unreachable && is_needed) {
      because(draft, "process {} is ready to join again", member.id);
      member.stage = Stage::ready;
      member.rank = -1;
      member.step = draft.event.steps[index_of(member)];
    } else if (member.stage == Stage::unreachable) {
      // Nobody needs it any more, and no generation would take it in. Without an end it would wait in vain.
      dismiss(draft, member);
    } else if (was_killed(member)) {
      // The first order may have been lost with the connection.
      act(draft, {.kind = ActionKind::kill_process, .member = member.id});
    }
  }
  if (is_needed) {
    start_missing(draft);
    dismiss_surplus(draft);
    regroup_if_that_changes_anything(draft);
  }
  go_on_without_the_gone(draft);
}

// The head leaves with its host, so that ends the run in order. So it does where no other host could go on.
void on_host_leaving(Draft& draft) {
  const auto stays = [&draft](const Member& member) {
    return is_in_generation(member) && !is_of_the_host(draft, member) && !is_on_leaving_host(draft.state, member);
  };
  because(draft, "host {} is to leave the run", draft.event.host);
  if (draft.event.host == 0) return on_stop_requested(draft);
  if (host_of(draft).stage != Host::Stage::there) return because(draft, "it is not part of the run");
  if (is_ending(draft) || draft.state.is_stop_requested) return because(draft, "the run is ending in any case");
  if (has_any(draft.state, is_in_generation) && !has_any(draft.state, stays)) return on_stop_requested(draft);
  host_of(draft) = {.stage = Host::Stage::leaving, .was_asked_to_leave = true, .away_since = draft.now};
  drop_starts_on(draft, draft.event.host);
  for (Member& member : draft.state.members) {
    // Members of the generation leave at the next step boundary. A newcomer there would get into no generation.
    if (is_of_the_host(draft, member) && is_newcomer(member)) dismiss(draft, member);
  }
  try_slots_if_no_other_is_left(draft);
  start_missing(draft);
  regroup_if_that_changes_anything(draft);
  open_if_possible(draft);
}

// Which of the two goes is decided once all members have left the generation: one of them may have the only state.
// Before its first step the run tries again with all, as often as it may: it was asked for with all its hosts.
void on_hosts_cut(Draft& draft) {
  const auto [one, other] = std::minmax(draft.event.host, draft.event.peer);
  const HostsCut cut{.one = one, .other = other, .why = draft.event.what};
  const std::string sentence = sentence_about(cut);
  because(draft, sentence);
  if (is_ending(draft)) return because(draft, "the run is ending, so nothing changes");
  if (draft.event.generation != draft.state.generation || draft.state.cut) {
    return because(draft, "the generation that waited for it is over");
  }
  const bool is_first_of_generation = draft.state.phase == RunPhase::running;
  const bool is_trial = is_of_a_trial(draft.state, cut);
  if (draft.state.has_progressed || draft.state.is_stop_requested) draft.state.cut = cut;
  if (!is_first_of_generation) return open_if_possible(draft);
  draft.is_of_a_failure = true;
  draft.state.failed_generation = draft.state.generation;
  // Its members are all dismissed below, so no state of theirs counts.
  if (!draft.state.policy.keep_survivors) part_hosts(draft);
  lose_generation(draft);
  if (draft.state.is_stop_requested) return go_on_stopping(draft, {.cause = sentence});
  if (!is_trial) return go_on_elsewhere(draft, sentence, false);
  start_what_is_missing(draft, free_slot(draft.state, draft.now), {});
  open_if_possible(draft);
}

void part_hosts(Draft& draft) {
  if (!draft.state.cut) return;
  const HostsCut cut = *std::exchange(draft.state.cut, std::nullopt);
  const std::optional<int> host = host_to_part_with(draft.state, cut);
  if (!host) {
    because(draft, "one of two hosts without a connection has no process any more");
    if (!draft.state.is_stop_requested) start_missing(draft);
    return;
  }
  because(draft, "the run goes on without host {}", *host);
  draft.is_of_a_failure = true;
  const std::string sentence = sentence_about(cut);
  std::vector<DeviceSlotChange> changes;
  for (Member& member : draft.state.members) {
    if (member.host != *host || !is_able(member)) continue;
    changes.push_back(
        {.device_slot = member.device_slot, .member = member.id, .is_of_a_trial = is_on_trial(draft.state, member)});
    end_for_the_cut(draft, member, sentence);
  }
  drop_starts_on(draft, *host);
  leave_out_slots_of(draft, *host, changes, sentence);
  if (!draft.state.is_stop_requested) start_missing(draft);
}

// The run was asked for with all its hosts. It would surprise a user if it silently began with fewer.
void on_hosts_missing(Draft& draft) {
  std::string names;
  for (const int host : missing_at_the_start(draft)) {
    names += fmt::format("{}host {}", names.empty() ? "" : ", ", host);
  }
  end_run(draft, {.exit_code = kExitGaveUp,
                  .reason = fmt::format("gave up: {} did not join within {}; start the same command on each host, or "
                                        "give them more time with --join-timeout",
                                        names, seconds(draft.state.policy.join_timeout))});
}

}  // namespace holdfast::recovery
