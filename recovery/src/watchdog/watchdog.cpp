// The watchdog's loop, and what it writes down. An event is decided on and carried out before it is recorded, because
// survivors wait for the actions. The supervisor decides as a pure function, so each decision can be tested without
// processes. docs/decisions/recovery.md

#include "watchdog/watchdog_loop.h"

#include <signal.h>
#include <unistd.h>

#include <utility>

#include <fmt/format.h>

#include "channel/descriptors.h"
#include "decide/policy.h"
#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "holdfast/recovery/run_lock.h"
#include "hosts/local_host.h"
#include "journal/recorded_actions.h"
#include "journal/told_decision.h"
#include "process/local_replicas.h"
#include "process/signals.h"

namespace holdfast::recovery {
namespace {

// To read the names of functions when the run ends with a crash.
constexpr std::chrono::seconds kCrashTimeout(5);

// Drops the last sentence of a refusal, which says what to do.
std::string without_advice(const std::string& refusal) {
  return refusal.substr(0, refusal.rfind(". "));
}

}  // namespace

WatchdogLoop::WatchdogLoop(const WatchdogOptions& options, const OwnedRun& run, bool may_give_way, OtherHosts* others)
    : options_(options),
      run_(run),
      may_give_way_(may_give_way),
      others_(others),
      past_(read_past(journal_path(options.run_directory))),
      folder_thread_(others == nullptr ? nullptr : std::make_unique<FolderThread>()),
      journal_(journal_path(options.run_directory), folder_thread_.get()),
      own_directory_(others == nullptr ? nullptr : std::make_shared<OwnDirectory>(duplicate(run.lock().value()))),
      signals_(io_, SIGINT, SIGTERM, SIGUSR1),
      state_(initial_state(policy_of(options), past_.last_generation + 1)),
      links_(others == nullptr ? nullptr : std::make_unique<LinkListener>(io_)),
      host_(local_host(io_,
                       local_replicas(io_, run_.lock().value(),
                                      [this] {
                                        journal_.append({{"event", "sweeper_lost"}});
                                      }),
                       {.is_plain_program = options.is_plain_program, .links = links_.get()})),
      hang_detector_(hang_limits_of(options),
                     {.is_stopped = [this](int id) { return processes_.at(id)->is_stopped(); },
                      .cpu_demand = [this](int id) { return processes_.at(id)->cpu_demand(); },
                      .in_background = [this](int id) { return processes_.at(id)->what_in_background(); }}) {
  // nohup(1) starts programs with SIGHUP ignored, so that it does not stop them.
  if (!is_ignored(SIGHUP)) signals_.add(SIGHUP);
}

RunOutcome WatchdogLoop::run() {
  nlohmann::json started{{"event", "watchdog_started"},
                         {"pid", ::getpid()},
                         {"replicas", options_.replicas},
                         {"command", options_.command}};
  if (options_.hosts > 1) started["hosts"] = options_.hosts;
  journal_.append(std::move(started));
  // After the first line of this watchdog, since both may write into the journal that they cannot be had.
  open_control();
  watch_devices();
  open_hosts();
  wait_for_signal();
  wait_for_tick();
  feed({.kind = EventKind::start});
  io_.run();
  // It needs the loop, which has ended.
  host_->stop_watching_devices();
  is_over_ = true;
  // What their agents say meanwhile comes too late.
  if (others_ != nullptr) others_->end_run(outcome_.exit_code, outcome_.sentence);
  // It needs the loop, too. It removes a file of the run directory, for which other hosts do not wait.
  control_.reset();
  // Before the line of the run's end, which is the last one of this watchdog in the journal.
  tell_of_crashes(crash_reader_.take_all(Deadline::after(kCrashTimeout)));
  hand_over_what_is_left();
  outcome_.is_stop_requested = outcome_.is_stop_requested || state_.is_stop_requested;
  // A run that was killed from outside did not fail by itself, so a later run of other choices may not put it aside.
  const bool has_failed = outcome_.exit_code == kExitUnrecoverable || outcome_.exit_code == kExitGaveUp;
  journal_.append_run_end(outcome_.exit_code, has_failed && !was_killed_from_outside_);
  take_late_signal();
  return outcome_;
}

// A file system may have no sockets. The run goes on without requests then.
void WatchdogLoop::open_control() {
  try {
    control_.emplace(
        io_, options_.run_directory,
        [this](const nlohmann::json& request, const ControlSocket::Answer& answer) {
          requests_.take(request, answer, Moment::clock::now());
        },
        ControlSocket::Limits{});
  } catch (const Error& error) {
    log(LogLevel::warning, std::string("watchdog: ") + error.what());
    journal_.append({{"event", "no_control_socket"}, {"what", error.what()}});
  }
}

// The run goes on without it. A failure of a device is then noticed by the process that it breaks.
void WatchdogLoop::watch_devices() {
  const std::vector<int> numbers = device_events_.cuda_numbers();
  if (numbers.empty()) return;
  const auto take = [this](const GpuEvent& event) {
    for (Event& follows : device_events_.take(event, state_, Moment::clock::now())) {
      follows.step = follows.kind == EventKind::device_failed ? step_of(follows.member) : -1;
      feed(std::move(follows));
    }
  };
  try {
    host_->watch_devices(numbers,
                         {.on_begin = [this](const std::vector<WatchedGpu>& gpus) { device_events_.watched(gpus); },
                          .on_event = take,
                          .on_end = [this](const std::string& why) { device_events_.unwatched(why); }});
  } catch (const Error& error) {
    device_events_.unwatched(error.what());
  }
}

void WatchdogLoop::open_hosts() {
  if (others_ == nullptr) return;
  others_->open(
      io_,
      {.on_joined = [this](int host) { feed({.kind = EventKind::host_joined, .host = host}); },
       .on_lost = [this](int host,
                         const std::string& why) { feed({.kind = EventKind::host_lost, .what = why, .host = host}); },
       .on_fence_passed = [this](int host) { feed({.kind = EventKind::fence_passed, .host = host}); },
       .on_returned =
           [this](int host, const std::vector<int>& members, const std::vector<std::int64_t>& steps) {
             feed({.kind = EventKind::host_returned, .host = host, .members = members, .steps = steps});
           },
       .on_leaving = [this](int host,
                            int signal) { feed({.kind = EventKind::host_leaving, .signal = signal, .host = host}); }});
  // Host 0 is one of them: its connections fail as those of any other host.
  for (int host = 0; host < options_.hosts; ++host) {
    agent_of_host(host).when_unreached([this, host](int generation, int peer, const std::string& why) {
      feed({.kind = EventKind::hosts_cut, .generation = generation, .what = why, .host = host, .peer = peer});
    });
  }
}

// Functions and not values: requests come at any time, and each sees the run as it is then.
RunRequests::Run WatchdogLoop::run_to_ask() {
  return {.max_replicas = most_replicas(options_),
          .devices = options_.devices,
          .state = [this]() -> const State& { return state_; },
          .member_statuses = [this] { return member_statuses(); },
          .restarts = [this]() -> const RestartCounts& { return past_.restarts; },
          .device_events = [this](Moment now) { return device_events_.describe(now); },
          .address_of = [this](int host) { return others_->links_of(host, 0).host; },
          .scale = [this](int replicas) { feed({.kind = EventKind::scale_requested, .count = replicas}); },
          .ask_for_savepoint =
              [this](int number) {
                send(by_rank_.front(), {.body = {{"kind", kMakeSavepoint}, {"number", number}}});
              }};
}

// Reads the life pages. No process is asked, so a hung one shows its last step.
std::map<int, MemberStatus> WatchdogLoop::member_statuses() const {
  std::map<int, MemberStatus> member_statuses;
  for (const auto& [id, process] : processes_) {
    const Heartbeat heartbeat = process->heartbeat(id, 0);
    const std::optional<ReplicaWork> work = slow_replicas_.work_of(id);
    member_statuses[id] = {.pid = process->pid(),
                           .step = heartbeat.step,
                           .phase = heartbeat.phase,
                           .progress = heartbeat.progress,
                           .samples = process->samples(),
                           .shards = work ? work->shards : 0};
  }
  return member_statuses;
}

void WatchdogLoop::hand_over_what_is_left() {
  if (outcome_.exit_code == kExitFinished || outcome_.has_other_choices || !options_.when_unfinished) return;
  if (!may_use_memory(options_)) return;
  const std::optional<MemorySnapshots::Whole> newest = host_->newest_snapshot();
  // A savepoint of this run would be taken for one of the run that has begun there.
  if (newest && is_directory_taken_over(run_.lock(), options_.run_directory)) {
    log(LogLevel::warning,
        fmt::format("watchdog: the newest state in memory is not saved, because another run has begun in {}",
                    options_.run_directory));
    return;
  }
  if (newest) options_.when_unfinished(newest->step, newest->bytes);
}

Hello WatchdogLoop::hello_to(int rank) const {
  return {.intended_rank = rank,
          .replicas = state_.target,
          .watchdog_pid = ::getpid(),
          .patience = hang_limits_of(options_).longest(),
          .run_directory = options_.run_directory,
          .config = options_.worker_config,
          .faults = all_faults(options_),
          .log_level = options_.recovery.log_level,
          .has_own_folder = options_.has_separate_folders};
}

// Actions may cause events. Those wait until the decision before them is carried out.
void WatchdogLoop::feed(Event event) {
  if (is_over_) return;
  const auto process = processes_.find(event.member);
  // Decided here: the process may have entered a step by the time the event is decided on.
  event.is_joining = process != processes_.end() && process->second->join_state() != JoinState::in_steps;
  events_.push_back(std::move(event));
  // An event is being decided on further up the stack, and its loop takes this one when it is done.
  if (events_.size() > 1) return;
  while (!events_.empty()) {
    decide_on(events_.front());
    events_.pop_front();
  }
}

// Actions come before the records, since survivors wait for them. `subject` is the member before the decision.
void WatchdogLoop::decide_on(const Event& event) {
  const Moment now = Moment::clock::now();
  // Read before the decision, which may take the rank from the member, or forget the member.
  nlohmann::json subject = {{"member", event.member}, {"rank", rank_of(event.member)}, {"pid", pid_of(event.member)}};
  const Member* member = find_member(state_, event.member);
  if (options_.hosts > 1 && member != nullptr) subject["host"] = member->host;
  const int rank =
      rank_of(event.member) >= 0 ? rank_of(event.member) : intended_ranks_.rank_of(event.member).value_or(-1);
  const bool were_hosts_cut = state_.cut.has_value();
  Decision decision = decide(state_, event, now);
  state_ = decision.state;
  for (const Action& action : decision.actions) perform(action);
  write_down(event, subject, decision, now);
  // Which host the run goes on without is decided after the report, when its members have left.
  const bool has_parted_hosts = were_hosts_cut && !state_.cut;
  tell_of(event, rank, decision, has_parted_hosts, now);
  forget_gone_processes();
}

void WatchdogLoop::write_down(const Event& event, const nlohmann::json& subject, const Decision& decision, Moment now) {
  nlohmann::json line{{"event", to_string(event.kind)}, {"generation", state_.generation}, {"reason", decision.reason}};
  if (!is_of_the_run(event.kind)) line.update(subject);
  // The journal calls a device slot a place.
  if (event.kind == EventKind::device_slot_lost) line["place"] = event.device_slot;
  if (is_of_a_host(event.kind)) line["host"] = event.host;
  if (event.kind == EventKind::hosts_cut) line["peer"] = event.peer;
  if (event.step >= 0) line["step"] = event.step;
  if (!event.what.empty()) line["what"] = event.what;
  if (event.signal != 0) line["signal"] = event.signal;
  if (event.kind == EventKind::exited && event.signal == 0) line["exit_code"] = event.exit_code;
  for (const Action& action : decision.actions) line["actions"].push_back(to_json(action, now));
  for (const DeviceSlotChange& change : decision.device_slot_changes) line["places"].push_back(to_json(change));
  journal_.append(std::move(line));
  log(LogLevel::debug, fmt::format("watchdog: {}", decision.reason));
}

void WatchdogLoop::write_to_log(const std::vector<IncidentStory::Line>& lines) {
  for (const IncidentStory::Line& line : lines) log(line.level, line.text);
}

// Writes the log of the user: what was asked for, and a line for each incident.
void WatchdogLoop::tell_of(const Event& event, int rank, const Decision& decision, bool has_parted_hosts, Moment now) {
  if (outcome_.has_other_choices) return;  // run_watchdog() logs it
  write_to_log(story_.take(event, rank, decision, now));
  if (const auto level = told_level(event, decision, has_parted_hosts)) log(*level, decision.reason);
  for (const Action& action : decision.actions) {
    if (action.kind != ActionKind::finish) continue;
    write_to_log(story_.end(*decision.state.ending));
    outcome_.sentence = story_.last_sentence(*decision.state.ending);
  }
}

// Dropping a process kills it, so one is dropped only after the supervisor has forgotten it.
void WatchdogLoop::forget_gone_processes() {
  std::erase_if(processes_, [this](const auto& entry) { return find_member(state_, entry.first) == nullptr; });
  intended_ranks_.forget_gone(state_);
}

// A member that the supervisor has forgotten counts as leaving.
Stage WatchdogLoop::stage_of(int id) const {
  const Member* member = find_member(state_, id);
  return member == nullptr ? Stage::leaving : member->stage;
}

int WatchdogLoop::rank_of(int id) const {
  const Member* member = find_member(state_, id);
  return member == nullptr ? -1 : member->rank;
}

std::int64_t WatchdogLoop::step_of(int id) const {
  const auto process = processes_.find(id);
  // The page of a newcomer has no step yet, and none is to blame for its failure.
  if (process == processes_.end() || process->second->join_state() == JoinState::newcomer) return -1;
  return process->second->step();
}

int WatchdogLoop::pid_of(int id) const {
  const auto process = processes_.find(id);
  return process == processes_.end() ? 0 : process->second->pid();
}

void log_as_asked(const WatchdogOptions& options) {
  if (options.recovery.log_level) set_log_level(*options.recovery.log_level);
}

RunOutcome run_watchdog(const WatchdogOptions& options) {
  check_options(options);
  return run_watchdog(OwnedRun::take(options.run_directory, {.copies = std::nullopt, .how = options.start}),
                      [&] { return options; });
}

RunOutcome run_watchdog(OwnedRun run, const std::function<WatchdogOptions()>& options_of) {
  outlive_failing_writes();
  bool may_give_way = run.may_give_way();
  for (;;) {
    std::string why;
    try {
      const WatchdogOptions options = options_of();
      check_options(options);
      log_as_asked(options);
      RunOutcome outcome = WatchdogLoop(options, run, may_give_way).run();
      if (!outcome.has_other_choices || !run.may_give_way()) return outcome;
      why = outcome.sentence;
    } catch (const OtherChoices& failure) {
      if (!may_give_way) throw;
      why = failure.what();
    }
    // A run gives way once at most. Otherwise a program whose choices change at each start would never end.
    may_give_way = false;
    const std::string kept_as = run.give_way();
    log(LogLevel::warning, fmt::format("the earlier run in {} had failed before it had any result; it is kept as {}, "
                                       "and a new one starts, since the program has changed: {}",
                                       run.directory(), kept_as, without_advice(why)));
  }
}

}  // namespace holdfast::recovery
