#include "holdfast/recovery/watchdog.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "arena_exchange.h"
#include "control_socket.h"
#include "descriptors.h"
#include "hang_detector.h"
#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "holdfast/recovery/faults.h"
#include "holdfast/recovery/memory_snapshot.h"
#include "journal.h"
#include "messages.h"
#include "replica_process.h"
#include "run_lock.h"
#include "run_requests.h"
#include "slow_replicas.h"
#include "supervisor.h"

namespace holdfast::recovery {
namespace {

namespace asio = boost::asio;

// Longer than survivors need for their way into the next generation and a step that is not a long one.
constexpr std::chrono::milliseconds kStartDelay(500);
constexpr std::chrono::milliseconds kTickPeriod(100);
const std::string kHowToRegister =
    "holdfast/recovery/worker.h, or worker_c.h; --plain runs programs that know nothing of Holdfast";
// For the replicas of a watchdog that was killed to die.
constexpr std::chrono::seconds kLockTimeout(2);

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::invalid_argument, "the watchdog cannot run: " + what);
}

// They travel to the workers in JSON, which can carry nothing else.
void check_utf8(const char* name, const std::string& text) {
  try {
    static_cast<void>(nlohmann::json(text).dump());
  } catch (const nlohmann::json::exception&) {
    refuse(std::string(name) + " is not UTF-8 text");
  }
}

int most_replicas(const WatchdogOptions& options) {
  return options.max_replicas == 0 ? kMaxReplicas : options.max_replicas;
}

void check(const WatchdogOptions& options) {
  if (options.max_replicas < 0 || options.max_replicas > kMaxReplicas) {
    refuse("max_replicas is " + std::to_string(options.max_replicas));
  }
  if (options.replicas < 1 || options.replicas > most_replicas(options)) {
    refuse("replicas is " + std::to_string(options.replicas) + ", allowed are 1 to " +
           std::to_string(most_replicas(options)));
  }
  if (options.spares < 0 || options.spares > kMaxReplicas) refuse("spares is " + std::to_string(options.spares));
  if (options.spares > 0 && options.is_plain_program) {
    refuse("a spare waits to be told that it is needed, which a program that does not register cannot be");
  }
  if (options.when_slow != WhenSlow::report && options.is_plain_program) {
    refuse("how fast a program computes that does not register is not known, so nobody can be dealt less or replaced");
  }
  if (options.when_slow == WhenSlow::replace && options.recover_from == RecoverFrom::savepoint) {
    refuse("with recover_from savepoint the replacement of a slow replica would send all back to the newest savepoint");
  }
  if (options.places < 0) refuse("places is " + std::to_string(options.places));
  if (options.run_directory.empty()) refuse("run_directory is empty");
  if (options.command.empty()) refuse("command is empty");
  if (options.max_restarts < 0) refuse("max_restarts is " + std::to_string(options.max_restarts));
  if (options.place_rest.count() <= 0) refuse("place_rest is " + std::to_string(options.place_rest.count()) + " ms");
  const auto hang_after = options.hang_after.value_or(options.start_timeout);
  for (const auto duration : {hang_after, options.start_timeout, options.stop_grace, options.restart_window}) {
    if (duration.count() <= 0) refuse("one of its durations is " + std::to_string(duration.count()) + " ms");
  }
  check_utf8("run_directory", options.run_directory);
  check_utf8("worker_config", options.worker_config);
  for (const std::string& fault : options.faults) parse_fault(fault, options.replicas + options.spares);
}

SupervisorPolicy policy_of(const WatchdogOptions& options) {
  return {.replicas = options.replicas,
          .spares = options.spares,
          .places = options.places == 0 ? options.replicas : options.places,
          .when_lost = options.when_lost,
          .keep_survivors = options.recover_from == RecoverFrom::survivors && !options.is_plain_program,
          .all_start_together = options.is_plain_program,
          .start_when_gone = options.start_when_gone.value_or(false),
          .place_rest = options.place_rest,
          .start_delay = kStartDelay,
          .restart = {.max_restarts = options.max_restarts,
                      .restart_window = options.restart_window,
                      .stop_grace = options.stop_grace}};
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

class Watchdog {
 public:
  explicit Watchdog(const WatchdogOptions& options)
      : options_(options),
        lock_(lock_run_directory(options.run_directory, Deadline::after(kLockTimeout))),
        past_(read_past(journal_path())),
        journal_(journal_path()),
        signals_(io_, SIGINT, SIGTERM, SIGUSR1),
        state_(initial_state(policy_of(options), past_.last_generation + 1)),
        hang_detector_({.starting = options.start_timeout, .hang_after = options.hang_after},
                       {.is_stopped = [this](int id) { return processes_.at(id)->is_stopped(); },
                        .cpu_demand = [this](int id) { return processes_.at(id)->cpu_demand(); }}) {
    // nohup(1) starts programs so, and means it.
    if (!is_ignored(SIGHUP)) signals_.add(SIGHUP);
  }

  RunOutcome run() {
    if (options_.when_owned) options_.when_owned();
    journal_.append({{"event", "watchdog_started"},
                     {"pid", ::getpid()},
                     {"replicas", options_.replicas},
                     {"command", options_.command}});
    open_control();
    wait_for_signal();
    wait_for_tick();
    feed({.kind = EventKind::start});
    io_.run();
    control_.reset();
    hand_over_what_is_left();
    return outcome_;
  }

 private:
  std::string journal_path() const { return options_.run_directory + "/journal.jsonl"; }

  // --- events

  void wait_for_signal() {
    signals_.async_wait([this](const boost::system::error_code& error, int signal) {
      if (error) return;
      feed({.kind = EventKind::stop_requested, .signal = signal});
      wait_for_signal();
    });
  }

  void wait_for_tick() {
    tick_.expires_after(kTickPeriod);
    tick_.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      look_for_progress();
      look_for_hang();
      look_for_stragglers();
      requests_.look(Moment::clock::now());
      wait_for_tick();
    });
  }

  // Of the members of the generation that runs.
  void look_for_progress() {
    if (state_.phase != RunPhase::running || has_progressed_) return;
    std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
    for (const auto& [id, process] : processes_) {
      if (stage_of(id) == Stage::training) lowest = std::min(lowest, process->step());
    }
    if (lowest == std::numeric_limits<std::int64_t>::max() || lowest <= furthest_step_) return;
    has_progressed_ = true;
    feed({.kind = EventKind::progressed, .generation = state_.generation, .step = lowest});
  }

  void look_for_hang() {
    if (state_.phase != RunPhase::running && state_.phase != RunPhase::gathering) return;
    if (options_.is_plain_program) return;
    std::vector<Pulse> pulses;
    for (const auto& [id, process] : processes_) {
      const Stage stage = stage_of(id);
      if (stage == Stage::starting || stage == Stage::training) pulses.push_back(process->pulse(id, arrivals_of(id)));
    }
    if (const std::optional<Hang> hang = hang_detector_.look(pulses, Moment::clock::now())) {
      const auto& process = processes_.at(hang->member);
      const std::string hint =
          process->has_joined() ? "" : "; it never registered as a worker (" + kHowToRegister + ")";
      feed({.kind = EventKind::hang_detected,
            .member = hang->member,
            .what = hang->what + hint,
            .step = step_of(hang->member)});
    }
  }

  // Once all members have said what they compute.
  void look_for_stragglers() {
    if (state_.phase != RunPhase::running) return;
    std::vector<Load> loads;
    std::int64_t step = -1;
    for (const int id : by_rank_) {
      const auto process = processes_.find(id);
      const std::optional<Worker::Work> work = slow_replicas_.work_of(id);
      if (process == processes_.end() || !work) return;
      loads.push_back(process->second->load(id, work->shards, work->at_once));
      step = std::max(step, process->second->step());
    }
    for (Event& event : slow_replicas_.look(loads, step, Moment::clock::now())) feed(std::move(event));
  }

  std::uint64_t arrivals_of(int id) const {
    return arenas_ && stage_of(id) == Stage::training ? arenas_->arrivals(rank_of(id)) : 0;
  }

  // One that the supervisor has forgotten counts as leaving.
  Stage stage_of(int id) const {
    const Member* member = find_member(state_, id);
    return member == nullptr ? Stage::leaving : member->stage;
  }

  int rank_of(int id) const {
    const Member* member = find_member(state_, id);
    return member == nullptr ? -1 : member->rank;
  }

  ReplicaProcess::Handlers handlers_of(int id) {
    const auto tell = [this, id](EventKind kind, const std::string& what) {
      feed({.kind = kind, .member = id, .what = what, .step = step_of(id)});
    };
    return {.on_message = [this, id](Message& message) { on_message(id, message); },
            .on_bad_message = [tell](const std::string& what) { tell(EventKind::failure_reported, what); },
            .on_death = [tell] { tell(EventKind::died, ""); },
            .on_exit = [this, id](ExitStatus status) { on_exit(id, status); }};
  }

  void on_exit(int id, ExitStatus status) {
    const bool is_clean = status.code == 0 && status.signal == 0;
    Event event{.kind = EventKind::exited,
                .member = id,
                .exit_code = status.code,
                .signal = status.signal,
                .step = step_of(id)};
    if (options_.is_plain_program && state_.is_stop_requested) {
      // It was asked by a signal that ends most programs.
      event.what = status.signal == 0 ? "left with code " + std::to_string(status.code)
                                      : "ended by signal " + std::to_string(status.signal);
      event.exit_code = kExitStopped;
      event.signal = 0;
    } else if (options_.is_plain_program && is_clean) {
      feed({.kind = EventKind::finished, .member = id});
    } else if (is_clean && !processes_.at(id)->has_joined()) {
      feed({.kind = EventKind::failure_reported,
            .member = id,
            .what = "ended with code 0 and never registered as a worker (" + kHowToRegister + ")",
            .is_unrecoverable = true});
    }
    feed(std::move(event));
  }

  std::int64_t step_of(int id) const {
    const auto process = processes_.find(id);
    if (process == processes_.end() || process->second->standing() == Standing::newcomer) return -1;
    return process->second->step();
  }

  void on_message(int id, Message& message) {
    const nlohmann::json& body = message.body;
    const std::string kind = body.at("kind").get<std::string>();
    Event event{.member = id, .step = step_of(id)};
    if (kind == kJoined) {
      processes_.at(id)->watch_for_death();
      if (!options_.is_plain_program) return;
      event.kind = EventKind::failure_reported;
      event.what = "registered as a worker, which a plain program never does; run it as what it is";
      event.is_unrecoverable = true;
    } else if (kind == kReady) {
      event.kind = EventKind::ready;
      feed(std::move(event));
      for (Event& slow : slow_replicas_.on_spare_ready()) feed(std::move(slow));
      return;
    } else if (kind == kCheckedIn) {
      event.kind = EventKind::checked_in;
      event.generation = body.at("generation").get<int>();
      event.step = body.at("step").get<std::int64_t>();
    } else if (kind == kFinished) {
      event.kind = EventKind::finished;
    } else if (kind == kFailure) {
      event.kind = EventKind::failure_reported;
      event.what = body.at("what").get<std::string>();
      event.is_unrecoverable = body.at("is_unrecoverable").get<bool>();
    } else if (kind == kEvent) {
      return note(id, body);
    } else if (kind == kArenaRequest) {
      return send_arenas(id, arena_number_of(body), body.at("bytes").get<std::size_t>(),
                         message.descriptors.empty() ? FileDescriptor() : std::move(message.descriptors.front()));
    } else if (kind == kSnapshotRequest) {
      return send_snapshot_memory(id, body.at("bytes").get<std::size_t>());
    } else if (kind == kWork) {
      return slow_replicas_.work_reported(id, body.at("generation").get<int>(), parse_work(body));
    } else if (kind == kSavepointMade) {
      return requests_.savepoint_made(body.at("number").get<int>(), body.at("path").get<std::string>(),
                                      body.at("step").get<std::int64_t>());
    } else if (kind == kSavepointNotMade) {
      return requests_.savepoint_not_made(body.at("number").get<int>(), body.at("why").get<std::string>());
    } else {
      event.kind = EventKind::failure_reported;
      event.what = "sent a message of the unknown kind \"" + kind + "\"";
    }
    feed(std::move(event));
  }

  void note(int id, const nlohmann::json& body) {
    journal_.append({{"event", body.at("name")},
                     {"generation", state_.generation},
                     {"member", id},
                     {"rank", rank_of(id)},
                     {"pid", pid_of(id)},
                     {"details", body.at("details")}});
  }

  void send_arenas(int id, ArenaNumber which, std::size_t bytes, FileDescriptor shown) {
    if (!arenas_ || which.generation != state_.generation || stage_of(id) != Stage::training) {
      return send(id, {.body = arena_refusal(which, ErrorCode::cancelled,
                                             "generation " + std::to_string(which.generation) + " was ended")});
    }
    send_replies(arenas_->request(rank_of(id), which.number, bytes, std::move(shown)));
  }

  void send_replies(const std::vector<ArenaExchange::Reply>& replies) {
    for (const ArenaExchange::Reply& reply : replies) {
      const int id = by_rank_.at(static_cast<std::size_t>(reply.rank));
      if (processes_.contains(id)) send(id, reply.message);
    }
  }

  // --- memory snapshots

  void send_snapshot_memory(int id, std::size_t bytes) {
    try {
      SharedMemory memory = SharedMemory::create("holdfast-snapshots", bytes);
      std::vector<FileDescriptor> descriptors;
      descriptors.push_back(duplicate(memory.descriptor()));
      snapshot_memories_.push_back(std::move(memory));
      send(id, {.body = {{"kind", kSnapshotMemory}}, .descriptors = std::move(descriptors)});
    } catch (const Error& error) {
      feed({.kind = EventKind::failure_reported, .member = id, .what = error.what(), .step = step_of(id)});
    }
  }

  // Behind the newest writer's memory only what it does not replace yet.
  void forget_old_snapshots() {
    while (snapshot_memories_.size() > 1 && MemorySnapshots::newest(snapshot_memories_.back())) {
      snapshot_memories_.erase(snapshot_memories_.begin());
    }
  }

  std::vector<FileDescriptor> snapshot_descriptors() {
    std::vector<FileDescriptor> descriptors;
    if (options_.recover_from == RecoverFrom::savepoint) return descriptors;
    for (auto memory = snapshot_memories_.rbegin(); memory != snapshot_memories_.rend(); ++memory) {
      descriptors.push_back(memory->read_only_descriptor());
    }
    return descriptors;
  }

  void hand_over_what_is_left() {
    if (outcome_.exit_code == kExitFinished || !options_.when_unfinished) return;
    std::optional<MemorySnapshots::Whole> newest;
    for (const SharedMemory& memory : snapshot_memories_) {
      const auto candidate = MemorySnapshots::newest(memory);
      if (candidate && (!newest || candidate->step > newest->step)) newest = candidate;
    }
    if (newest) options_.when_unfinished(newest->step, newest->bytes);
  }

  // --- who asks from outside

  // Training matters more than being asked: a file system may have no sockets.
  void open_control() {
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

  RunRequests::Run run_to_ask() {
    return {.max_replicas = most_replicas(options_),
            .state = [this]() -> const State& { return state_; },
            .sights = [this] { return sights(); },
            .restarts = [this] { return std::span<const Restart>(past_.restarts); },
            .scale = [this](int replicas) { feed({.kind = EventKind::scale_requested, .count = replicas}); },
            .ask_for_savepoint =
                [this](int number) {
                  send(by_rank_.front(), {.body = {{"kind", kMakeSavepoint}, {"number", number}}});
                }};
  }

  std::map<int, Sight> sights() const {
    std::map<int, Sight> sights;
    for (const auto& [id, process] : processes_) {
      const Pulse pulse = process->pulse(id, 0);
      sights[id] = {.pid = process->pid(),
                    .step = pulse.step,
                    .phase = pulse.phase,
                    .progress = pulse.progress,
                    .samples = process->samples()};
    }
    return sights;
  }

  // --- decisions

  // Actions may cause events: those wait until the decision before them is carried out.
  void feed(Event event) {
    const auto process = processes_.find(event.member);
    event.is_joining = process != processes_.end() && process->second->standing() != Standing::in_steps;
    events_.push_back(std::move(event));
    if (events_.size() > 1) return;
    while (!events_.empty()) {
      decide_on(events_.front());
      events_.pop_front();
    }
  }

  // What survivors wait for comes before what is only written down. `subject` is who the event is about, as it was.
  void decide_on(const Event& event) {
    const Moment now = Moment::clock::now();
    const nlohmann::json subject = {
        {"member", event.member}, {"rank", rank_of(event.member)}, {"pid", pid_of(event.member)}};
    Decision decision = decide(state_, event, now);
    state_ = std::move(decision.state);
    for (const Action& action : decision.actions) perform(action);
    write_down(event, subject, decision, now);
    forget_gone_processes();
  }

  void write_down(const Event& event, const nlohmann::json& subject, const Decision& decision, Moment now) {
    nlohmann::json line{
        {"event", to_string(event.kind)}, {"generation", state_.generation}, {"reason", decision.reason}};
    const bool is_of_the_run = event.kind == EventKind::start || event.kind == EventKind::stop_requested ||
                               event.kind == EventKind::scale_requested || event.kind == EventKind::timer ||
                               event.kind == EventKind::progressed || event.kind == EventKind::deal_proposed;
    if (!is_of_the_run) line.update(subject);
    if (event.step >= 0) line["step"] = event.step;
    if (!event.what.empty()) line["what"] = event.what;
    if (event.signal != 0) line["signal"] = event.signal;
    if (event.kind == EventKind::exited && event.signal == 0) line["exit_code"] = event.exit_code;
    for (const Action& action : decision.actions) line["actions"].push_back(describe(action, now));
    journal_.append(std::move(line));
    log(decision.actions.empty() ? LogLevel::debug : LogLevel::info, "watchdog: " + decision.reason);
  }

  int pid_of(int id) const {
    const auto process = processes_.find(id);
    return process == processes_.end() ? 0 : process->second->pid();
  }

  void forget_gone_processes() {
    std::erase_if(processes_, [this](const auto& entry) { return find_member(state_, entry.first) == nullptr; });
  }

  // --- actions

  void perform(const Action& action) {
    switch (action.kind) {
      case ActionKind::start_process:
        return start_process(action.member, action.place);
      case ActionKind::open_generation:
        return open_generation(action);
      case ActionKind::cancel_generation:
        return cancel_generation();
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
        outcome_ = {.exit_code = action.exit_code, .sentence = action.text};
        requests_.run_ended(action.text);
        return io_.stop();
    }
  }

  void start_process(int id, int place) {
    const int rank = intended_rank(id);
    try {
      const auto process = ReplicaProcess::start(io_,
                                                 {.executable = options_.executable,
                                                  .arguments = options_.command,
                                                  .lock = lock_.value(),
                                                  .variables = variables_of(id, rank, place)},
                                                 handlers_of(id));
      processes_.emplace(id, process);
    } catch (const Error& error) {
      return feed({.kind = EventKind::start_failed, .member = id, .what = error.what()});
    }
    send(id, {.body = hello_message(
                  {.intended_rank = rank,
                   .replicas = state_.target,
                   .watchdog_pid = ::getpid(),
                   .patience = std::max(options_.hang_after.value_or(options_.start_timeout), options_.start_timeout),
                   .run_directory = options_.run_directory,
                   .config = options_.worker_config,
                   .restarts = past_.restarts,
                   .faults = options_.faults})});
    if (options_.is_plain_program) feed({.kind = EventKind::ready, .member = id});
  }

  void ask_to_stop() {
    if (!options_.is_plain_program) return tell_members({{"kind", kStop}});
    for (const auto& [id, process] : processes_) {
      if (stage_of(id) == Stage::training) process->signal(SIGTERM);
    }
  }

  std::vector<std::string> variables_of(int id, int rank, int place) const {
    if (!options_.variables_of) return {};
    const bool is_first = std::none_of(processes_.begin(), processes_.end(), [&](const auto& entry) {
      return entry.first != id && find_member(state_, entry.first) != nullptr;
    });
    return options_.variables_of({.rank = rank, .replicas = state_.target, .place = place, .is_first = is_first});
  }

  // The lowest that no other process has or is to have, so that one process thinks itself the first.
  int intended_rank(int id) {
    std::set<int> taken;
    for (const Member& member : state_.members) {
      if (member.stage == Stage::failed || member.stage == Stage::leaving) continue;
      if (member.rank >= 0) {
        taken.insert(member.rank);
      } else if (const auto intended = intended_ranks_.find(member.id); intended != intended_ranks_.end()) {
        taken.insert(intended->second);
      }
    }
    int rank = 0;
    while (taken.contains(rank)) ++rank;
    return intended_ranks_[id] = rank;
  }

  void open_generation(const Action& action) {
    for (const auto& [id, process] : processes_) furthest_step_ = std::max(furthest_step_, process->step());
    has_progressed_ = false;
    by_rank_ = action.members;
    arenas_.emplace(action.generation, static_cast<int>(by_rank_.size()));
    forget_old_snapshots();
    for (std::size_t rank = 0; rank < by_rank_.size(); ++rank) {
      Message welcome{.body = welcome_message({.generation = action.generation,
                                               .rank = static_cast<int>(rank),
                                               .size = static_cast<int>(by_rank_.size()),
                                               .shards = action.shards})};
      if (rank == 0) welcome.descriptors = snapshot_descriptors();
      send(by_rank_[rank], welcome);
    }
    requests_.generation_opened();
    slow_replicas_.generation_opened(action, furthest_step_, Moment::clock::now());
  }

  void cancel_generation() {
    if (arenas_) send_replies(arenas_->cancel());
  }

  void kill_process(int id) {
    const auto process = processes_.find(id);
    if (process != processes_.end()) process->second->kill();
  }

  void tell_members(const nlohmann::json& body) {
    for (const auto& [id, process] : processes_) {
      const Stage stage = stage_of(id);
      if (stage == Stage::training || stage == Stage::waiting) send(id, {.body = body});
    }
  }

  void set_timer(Moment moment) {
    timer_.expires_at(moment);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) feed({.kind = EventKind::timer});
    });
  }

  void record_failure(const Action& action) {
    const std::chrono::duration<double> ago = Moment::clock::now() - action.moment;
    const Restart restart{.generation = action.generation,
                          .rank = action.rank,
                          .cause = action.text,
                          .detected_unix_seconds = unix_seconds_now() - ago.count(),
                          .step = action.step};
    past_.restarts.push_back(restart);
    journal_.append_restart(restart);
    nlohmann::json message = to_json(restart);
    message["kind"] = kRestart;
    for (const auto& [id, process] : processes_) {
      if (stage_of(id) != Stage::failed && stage_of(id) != Stage::leaving) send(id, {.body = message});
    }
  }

  // A plain program reads nothing.
  void send(int id, const Message& message) {
    const auto process = processes_.find(id);
    if (process == processes_.end() || options_.is_plain_program) return;
    try {
      process->second->send(message);
    } catch (const Error& error) {
      // One that is gone is noticed by its death or exit, which say more.
      if (error.code() == ErrorCode::unavailable) return;
      feed({.kind = EventKind::failure_reported, .member = id, .what = error.what(), .step = step_of(id)});
    }
  }

  const WatchdogOptions& options_;
  const FileDescriptor lock_;  // released after the replicas are gone
  Past past_;                  // with the restarts of this watchdog
  Journal journal_;

  asio::io_context io_{1};
  asio::signal_set signals_;
  asio::steady_timer tick_{io_};
  asio::steady_timer timer_{io_};  // the supervisor's

  State state_;
  std::deque<Event> events_;  // the first is being decided on
  RunOutcome outcome_;

  RunRequests requests_{run_to_ask()};
  HangDetector hang_detector_;
  SlowReplicas slow_replicas_{options_.when_slow, journal_};
  std::map<int, std::shared_ptr<ReplicaProcess>> processes_;  // by member
  std::map<int, int> intended_ranks_;                         // by member
  std::vector<SharedMemory> snapshot_memories_;               // the newest writer's last

  // Of the newest generation.
  std::optional<ArenaExchange> arenas_;
  std::vector<int> by_rank_;  // members
  bool has_progressed_ = false;

  std::int64_t furthest_step_ = -1;  // of all generations before

  std::optional<ControlSocket> control_;  // last: it asks for all the others
};

}  // namespace

RunOutcome run_watchdog(const WatchdogOptions& options) {
  check(options);
  return Watchdog(options).run();
}

}  // namespace holdfast::recovery
