// How the watchdog carries out the actions that the supervisor decided on. A message that cannot be sent to a process
// becomes an event, the failure of that process. So an action never ends the run by itself.
// docs/decisions/recovery.md

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "channel/messages.h"
#include "decide/policy.h"
#include "holdfast/base/error.h"
#include "watchdog/watchdog_loop.h"

namespace holdfast::recovery {
namespace {

// The system refuses to every process what it refuses to one: a program that does not exist, a system call that the
// kernel lacks, a limit of this process. Once the program has run, such a failure may pass, because its file may just
// be being replaced.
bool is_same_for_all(ErrorCode code) {
  return code == ErrorCode::refused || code == ErrorCode::not_found || code == ErrorCode::unavailable;
}

}  // namespace

void WatchdogLoop::perform(const Action& action) {
  switch (action.kind) {
    case ActionKind::start_process:
      return start_process(action.member, action.device_slot);
    case ActionKind::open_generation:
      return open_generation(action);
    case ActionKind::cancel_generation:
      hang_detector_.excuse_waits();
      host_->cancel_generation();
      for (int host = 1; host < options_.hosts; ++host) agent_of_host(host).cancel_generation();
      return;
    case ActionKind::kill_process:
      return kill_process(action.member);
    case ActionKind::ask_to_regroup:
      return tell_members({{"kind", kRegroup}, {"generation", state_.generation}});
    case ActionKind::ask_to_stop:
      return ask_to_stop();
    case ActionKind::set_timer:
      return set_timer(action.moment);
    case ActionKind::record_failure:
      return record_failure(action);
    case ActionKind::finish:
      outcome_.exit_code = action.exit_code;
      outcome_.sentence = outcome_.has_other_choices ? other_choices_ : action.text;
      requests_.run_ended(action.text);
      // The loop ends after this handler. What is still queued is left to take_late_signal().
      return io_.stop();
  }
}

void WatchdogLoop::start_process(int id, int device_slot) {
  const IntendedRank intended = intended_ranks_.choose(state_, id);
  try {
    const auto process = agent_of_host(state_.policy.host_of(device_slot))
                             .start({.executable = options_.executable,
                                     .arguments = options_.command,
                                     .variables = variables_of(id, intended, device_slot),
                                     .member = id,
                                     .ignores_failing_writes = !options_.is_plain_program},
                                    handlers_of(id));
    processes_.emplace(id, process);
  } catch (const Error& error) {
    return on_start_failed(id, error);
  }
  send(id, {.body = hello_message(hello_to(intended.rank))});
  // A plain program never reports that it is ready. It counts as ready when it runs.
  if (options_.is_plain_program) feed({.kind = EventKind::ready, .member = id});
}

void WatchdogLoop::on_start_failed(int id, const Error& error) {
  // Then the run ends at once instead of after the whole restart budget.
  const bool is_certain = !state_.was_any_ready && is_same_for_all(error.code());
  feed({.kind = EventKind::start_failed, .member = id, .what = error.what(), .is_unrecoverable = is_certain});
}

std::vector<std::string> WatchdogLoop::variables_of(int id, const IntendedRank& intended, int device_slot) const {
  if (!options_.variables_of) return {};
  const bool is_first = std::none_of(processes_.begin(), processes_.end(), [&](const auto& entry) {
    return entry.first != id && find_member(state_, entry.first) != nullptr;
  });
  return options_.variables_of({.rank = intended.rank,
                                .local_rank = intended.local,
                                .replicas = state_.target,
                                .device_slot = device_slot,
                                .is_first = is_first});
}

void WatchdogLoop::open_generation(const Action& action) {
  // Steps that the next generation computes again are not progress. Only what goes beyond this step counts.
  for (const auto& [id, process] : processes_) furthest_step_ = std::max(furthest_step_, process->step());
  has_progressed_ = false;
  by_rank_ = action.members;
  HostAgent::Generation generation{.number = action.generation,
                                   .members = action.members,
                                   .shards = action.shards,
                                   .may_use_snapshots = may_use_memory(options_),
                                   .hosts = action.hosts};
  if (action.hosts.empty()) {
    host_->open_generation(generation);
  } else {
    open_on_hosts(std::move(generation));
  }
  requests_.generation_opened();
  slow_replicas_.generation_opened(action, furthest_step_, Moment::clock::now());
}

// Each pair of hosts gets a key for the connections between them.
void WatchdogLoop::open_on_hosts(HostAgent::Generation generation) {
  const std::set<int> hosts(generation.hosts.begin(), generation.hosts.end());
  std::map<std::pair<int, int>, LinkKey> keys;
  for (const int host : hosts) {
    generation.host = host;
    generation.peers.clear();
    for (const int peer : hosts) {
      if (peer == host) continue;
      const auto [key, is_new] = keys.try_emplace(std::minmax(host, peer));
      if (is_new) key->second = new_link_key();
      generation.peers.push_back(
          {.host = peer, .address = others_->links_of(peer, links_->port()), .key = key->second});
    }
    agent_of_host(host).open_generation(generation);
  }
}

HostAgent& WatchdogLoop::agent_of_host(int host) const {
  return host == 0 ? *host_ : others_->agent(host);
}

// A member that the supervisor has forgotten is in no generation, so any agent knows as much about it.
HostAgent& WatchdogLoop::agent_of(int id) const {
  const Member* member = find_member(state_, id);
  return agent_of_host(member == nullptr ? 0 : member->host);
}

void WatchdogLoop::kill_process(int id) {
  const auto process = processes_.find(id);
  if (process == processes_.end()) return;
  // Noted before the signal: its SIGKILL must not be taken for one from outside.
  killed_.insert(id);
  process->second->kill();
}

// A plain program reads no messages, so a signal asks it.
void WatchdogLoop::ask_to_stop() {
  if (!options_.is_plain_program) return tell_members({{"kind", kStop}});
  for (const auto& [id, process] : processes_) {
    if (stage_of(id) == Stage::training) process->ask_to_leave(SIGTERM);
  }
}

void WatchdogLoop::tell_members(const nlohmann::json& body) {
  for (const auto& [id, process] : processes_) {
    const Stage stage = stage_of(id);
    if (stage == Stage::training || stage == Stage::waiting) send(id, {.body = body});
  }
}

void WatchdogLoop::set_timer(Moment moment) {
  // Setting a new moment cancels the wait for the last one, so the supervisor has one timer at most.
  timer_.expires_at(moment);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) feed({.kind = EventKind::timer});
  });
}

void WatchdogLoop::record_failure(const Action& action) {
  // Readers of the journal need the time of day, and the supervisor knows monotonic moments only.
  const std::chrono::duration<double> ago = Moment::clock::now() - action.moment;
  const Restart restart{.generation = action.generation,
                        .rank = action.rank,
                        .cause = action.text,
                        .detected_unix_seconds = unix_seconds_now() - ago.count(),
                        .step = action.step};
  past_.restarts.add(restart);
  journal_.append_restart(restart);
}

// A plain program reads no messages.
void WatchdogLoop::send(int id, const Message& message) {
  const auto process = processes_.find(id);
  if (process == processes_.end() || options_.is_plain_program) return;
  try {
    process->second->send(message);
  } catch (const Error& error) {
    // The death or exit of a process that is gone is noticed elsewhere, and says more.
    if (error.code() == ErrorCode::unavailable) return;
    feed({.kind = EventKind::failure_reported, .member = id, .what = error.what(), .step = step_of(id)});
  }
}

}  // namespace holdfast::recovery
