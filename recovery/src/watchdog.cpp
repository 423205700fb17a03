#include "holdfast/recovery/watchdog.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "arena_exchange.h"
#include "hang_detector.h"
#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "holdfast/recovery/faults.h"
#include "journal.h"
#include "messages.h"
#include "replica_process.h"
#include "run_lock.h"
#include "supervisor.h"

namespace holdfast::recovery {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::milliseconds kTickPeriod(100);
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

void check(const WatchdogOptions& options) {
  if (options.replicas < 1 || options.replicas > kMaxReplicas) {
    refuse("replicas is " + std::to_string(options.replicas) + ", allowed are 1 to " + std::to_string(kMaxReplicas));
  }
  if (options.run_directory.empty()) refuse("run_directory is empty");
  if (options.command.empty()) refuse("command is empty");
  if (options.max_restarts < 0) refuse("max_restarts is " + std::to_string(options.max_restarts));
  for (const auto duration : {options.hang_after, options.start_timeout, options.stop_grace, options.restart_window}) {
    if (duration.count() <= 0) refuse("one of its durations is " + std::to_string(duration.count()) + " ms");
  }
  check_utf8("run_directory", options.run_directory);
  check_utf8("worker_config", options.worker_config);
  for (const std::string& fault : options.faults) parse_fault(fault, options.replicas);
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
        signals_(io_, SIGINT, SIGTERM),
        state_(initial_state(options.replicas,
                             {.max_restarts = options.max_restarts,
                              .restart_window = options.restart_window,
                              .stop_grace = options.stop_grace},
                             past_.last_generation + 1)) {
    // nohup(1) starts programs so, and means it.
    if (!is_ignored(SIGHUP)) signals_.add(SIGHUP);
  }

  RunOutcome run() {
    if (options_.when_owned) options_.when_owned();
    journal_.append({{"event", "watchdog_started"},
                     {"pid", ::getpid()},
                     {"replicas", options_.replicas},
                     {"command", options_.command}});
    wait_for_signal();
    wait_for_tick();
    feed({.kind = EventKind::start});
    io_.run();
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
      wait_for_tick();
    });
  }

  void look_for_progress() {
    if (state_.phase != RunPhase::running || has_progressed_) return;
    std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
    for (const auto& replica : replicas_) lowest = std::min(lowest, replica ? replica->step() : -1);
    if (lowest <= furthest_step_) return;
    has_progressed_ = true;
    feed({.kind = EventKind::progressed, .generation = state_.generation});
  }

  void look_for_hang() {
    if (state_.phase != RunPhase::running) return;
    std::vector<Pulse> pulses;
    for (int rank = 0; rank < options_.replicas; ++rank) {
      const ReplicaStatus& status = state_.replicas.at(rank);
      if (!status.has_exited && status.state != ReplicaState::finished)
        pulses.push_back(replicas_.at(rank)->pulse(rank, arenas_->arrivals(rank)));
    }
    if (const std::optional<Hang> hang = hang_detector_->look(pulses, Moment::clock::now())) {
      feed({.kind = EventKind::hang_detected,
            .generation = state_.generation,
            .rank = hang->member,
            .what = hang->what});
    }
  }

  ReplicaProcess::Handlers handlers_of(int generation, int rank) {
    const auto tell = [this, generation, rank](EventKind kind, const std::string& what) {
      feed({.kind = kind, .generation = generation, .rank = rank, .what = what});
    };
    return {.on_message = [this, generation, rank](Message& message) { on_message(generation, rank, message.body); },
            .on_bad_message = [tell](const std::string& what) { tell(EventKind::failure_reported, what); },
            .on_death = [tell] { tell(EventKind::died, ""); },
            .on_exit =
                [this, generation, rank](ExitStatus status) {
                  feed({.kind = EventKind::exited,
                        .generation = generation,
                        .rank = rank,
                        .exit_code = status.code,
                        .signal = status.signal});
                }};
  }

  void on_message(int generation, int rank, const nlohmann::json& body) {
    // A generation's replicas are dropped before the next one starts; one of them may still be telling its last.
    if (generation != state_.generation) return;
    const std::string kind = body.at("kind").get<std::string>();
    Event event{.generation = generation, .rank = rank};
    if (kind == kRegistered) {
      replicas_.at(rank)->watch_for_death();
      event.kind = EventKind::registered;
    } else if (kind == kFinished) {
      event.kind = EventKind::finished;
    } else if (kind == kFailure) {
      event.kind = EventKind::failure_reported;
      event.what = body.at("what").get<std::string>();
      event.is_unrecoverable = body.at("is_unrecoverable").get<bool>();
    } else if (kind == kEvent) {
      return note(rank, body);
    } else if (kind == kArenaRequest) {
      return send_arenas(rank, body.at("number").get<int>(), body.at("bytes").get<std::size_t>());
    } else {
      event.kind = EventKind::failure_reported;
      event.what = "sent a message of the unknown kind \"" + kind + "\"";
    }
    feed(std::move(event));
  }

  void note(int rank, const nlohmann::json& body) {
    journal_.append({{"event", body.at("name")},
                     {"generation", state_.generation},
                     {"rank", rank},
                     {"pid", pid_of(rank)},
                     {"details", body.at("details")}});
  }

  void send_arenas(int rank, int number, std::size_t bytes) {
    for (const ArenaExchange::Reply& reply : arenas_->request(rank, number, bytes)) send(reply.rank, reply.message);
  }

  // --- decisions

  // Actions may cause events: those wait until the decision before them is carried out.
  void feed(Event event) {
    events_.push_back(std::move(event));
    if (events_.size() > 1) return;
    while (!events_.empty()) {
      decide_on(events_.front());
      events_.pop_front();
    }
  }

  void decide_on(const Event& event) {
    const Moment now = Moment::clock::now();
    Decision decision = decide(state_, event, now);
    state_ = std::move(decision.state);
    write_down(event, decision, now);
    for (const Action& action : decision.actions) perform(action);
  }

  void write_down(const Event& event, const Decision& decision, Moment now) {
    nlohmann::json line{
        {"event", to_string(event.kind)}, {"generation", event.generation}, {"reason", decision.reason}};
    const bool is_of_the_run = event.kind == EventKind::start || event.kind == EventKind::stop_requested ||
                               event.kind == EventKind::timer || event.kind == EventKind::progressed;
    if (is_of_the_run) {
      line["generation"] = state_.generation;
    } else {
      line["rank"] = event.rank;
      line["pid"] = event.generation == state_.generation ? pid_of(event.rank) : 0;
    }
    if (!event.what.empty()) line["what"] = event.what;
    if (event.signal != 0) line["signal"] = event.signal;
    if (event.kind == EventKind::exited && event.signal == 0) line["exit_code"] = event.exit_code;
    for (const Action& action : decision.actions) line["actions"].push_back(describe(action, now));
    journal_.append(std::move(line));
    log(decision.actions.empty() ? LogLevel::debug : LogLevel::info, "watchdog: " + decision.reason);
  }

  int pid_of(int rank) const {
    const auto index = static_cast<std::size_t>(rank);
    return index < replicas_.size() && replicas_[index] ? replicas_[index]->pid() : 0;
  }

  // --- actions

  void perform(const Action& action) {
    switch (action.kind) {
      case ActionKind::start_generation:
        return start_generation(action.generation);
      case ActionKind::open_generation:
        return open_generation();
      case ActionKind::cancel_generation:
        return arenas_->cancel();
      case ActionKind::kill_all:
        return kill_all();
      case ActionKind::ask_to_stop:
        return ask_to_stop();
      case ActionKind::set_timer:
        return set_timer(action.moment);
      case ActionKind::record_restart:
        return record_restart(action);
      case ActionKind::finish:
        outcome_ = {.exit_code = action.exit_code, .sentence = action.text};
        return io_.stop();
    }
  }

  // The supervisor asks for it only when every process of the generation before has exited, so that its memory can go.
  void start_generation(int generation) {
    for (const auto& replica : replicas_) furthest_step_ = std::max(furthest_step_, replica ? replica->step() : -1);
    has_progressed_ = false;
    replicas_.clear();
    arenas_.emplace(generation, options_.replicas);
    hang_detector_.emplace(
        HangLimits{.starting = options_.start_timeout, .hang_after = options_.hang_after},
        HangDetector::Questions{.is_stopped = [this](int rank) { return replicas_.at(rank)->is_stopped(); },
                                .cpu_demand = [this](int rank) { return replicas_.at(rank)->cpu_demand(); }});
    for (int rank = 0; rank < options_.replicas; ++rank) start_replica(generation, rank);
  }

  void start_replica(int generation, int rank) {
    replicas_.emplace_back();
    try {
      replicas_.back() = ReplicaProcess::start(
          io_, {.executable = options_.executable, .arguments = options_.command, .lock = lock_.value()},
          handlers_of(generation, rank));
    } catch (const Error& error) {
      feed({.kind = EventKind::start_failed, .generation = generation, .rank = rank, .what = error.what()});
    }
  }

  void open_generation() {
    for (int rank = 0; rank < options_.replicas; ++rank) {
      const Welcome welcome{.rank = rank,
                            .size = options_.replicas,
                            .generation = state_.generation,
                            .watchdog_pid = ::getpid(),
                            .run_directory = options_.run_directory,
                            .config = options_.worker_config,
                            .restarts = past_.restarts,
                            .faults = options_.faults};
      send(rank, {.body = welcome_message(welcome)});
    }
  }

  void kill_all() {
    for (const auto& replica : replicas_) {
      if (replica) replica->kill();
    }
  }

  void ask_to_stop() {
    for (int rank = 0; rank < options_.replicas; ++rank) send(rank, {.body = {{"kind", kStop}}});
  }

  void set_timer(Moment moment) {
    timer_.expires_at(moment);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) feed({.kind = EventKind::timer});
    });
  }

  void record_restart(const Action& action) {
    const std::chrono::duration<double> ago = Moment::clock::now() - action.moment;
    const auto& replica = replicas_.at(action.rank);
    past_.restarts.push_back({.generation = action.generation,
                              .rank = action.rank,
                              .cause = action.text,
                              .detected_unix_seconds = unix_seconds_now() - ago.count(),
                              .step = replica ? replica->step() : -1});
    journal_.append_restart(past_.restarts.back());
  }

  void send(int rank, const Message& message) {
    const auto& replica = replicas_.at(rank);
    if (!replica) return;
    try {
      replica->send(message);
    } catch (const Error& error) {
      // One that is gone is noticed by its death or exit, which say more.
      if (error.code() == ErrorCode::unavailable) return;
      feed({.kind = EventKind::failure_reported, .generation = state_.generation, .rank = rank, .what = error.what()});
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

  // Of the current generation.
  std::optional<ArenaExchange> arenas_;
  std::optional<HangDetector> hang_detector_;
  std::vector<std::shared_ptr<ReplicaProcess>> replicas_;  // by rank; empty: could not be started
  bool has_progressed_ = false;

  std::int64_t furthest_step_ = -1;  // of all generations before
};

}  // namespace

RunOutcome run_watchdog(const WatchdogOptions& options) {
  check(options);
  return Watchdog(options).run();
}

}  // namespace holdfast::recovery
