// How the watchdog turns signals, ticks and messages of its replicas into events for the supervisor. Messages from a
// replica are not trusted: a wrong one is the failure of that replica. docs/decisions/recovery.md

#include <algorithm>
#include <csignal>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "channel/messages.h"
#include "decide/supervisor_text.h"
#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "holdfast/recovery/run_lock.h"
#include "watchdog/watchdog_loop.h"

namespace holdfast::recovery {
namespace {

constexpr std::chrono::milliseconds kTickPeriod(100);
// The journal has all frames. In the log more of them would hide the lines around.
constexpr std::size_t kMostLoggedFrames = 8;

}  // namespace

void WatchdogLoop::wait_for_signal() {
  signals_.async_wait([this](const boost::system::error_code& error, int signal) {
    if (error) return;
    // Also when it is too late to stop anything: a program with further runs must not begin the next one.
    outcome_.is_stop_requested = true;
    if (is_over_) return;
    feed({.kind = EventKind::stop_requested, .signal = signal});
    wait_for_signal();
  });
}

// Takes a signal that came while the run ended, when events were no longer taken. Other completions that are ready find
// no process, and nothing is decided on them.
void WatchdogLoop::take_late_signal() {
  is_over_ = true;
  processes_.clear();
  io_.restart();
  io_.poll();
}

void WatchdogLoop::wait_for_tick() {
  tick_.expires_after(kTickPeriod);
  tick_.async_wait([this](const boost::system::error_code& error) {
    if (error || is_over_) return;
    if (own_directory_ != nullptr && own_directory_->is_lost.exchange(false)) lose_directory();
    look_for_progress();
    look_for_hang();
    look_for_stragglers();
    tell_of_crashes(crash_reader_.take());
    write_to_log(story_.look(Moment::clock::now()));
    requests_.look(Moment::clock::now());
    wait_for_tick();
  });
}

// Feeds `progressed` once in a generation, when all its members are further than the run ever was.
void WatchdogLoop::look_for_progress() {
  if (state_.phase != RunPhase::running || has_progressed_) return;
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
  for (const auto& [id, process] : processes_) {
    if (stage_of(id) == Stage::training) lowest = std::min(lowest, process->step());
  }
  // The slowest member decides: a step counts once all have ended it.
  if (lowest == std::numeric_limits<std::int64_t>::max() || lowest <= furthest_step_) return;
  has_progressed_ = true;
  feed({.kind = EventKind::progressed, .generation = state_.generation, .step = lowest});
}

void WatchdogLoop::look_for_hang() {
  if (state_.phase != RunPhase::running && state_.phase != RunPhase::gathering) return;
  // A plain program has no heartbeats.
  if (options_.is_plain_program) return;
  std::vector<Heartbeat> heartbeats;
  for (const auto& [id, process] : processes_) {
    const Stage stage = stage_of(id);
    // Other members wait for the watchdog itself, or are being ended.
    if (stage != Stage::starting && stage != Stage::training) continue;
    Heartbeat heartbeat = process->heartbeat(id, agent_of(id).arrivals(id));
    heartbeat.is_joining = stage == Stage::training && heartbeat.phase == Phase::starting;
    // A replica that computes its shards in several rounds needs as many times the time of one.
    if (const auto work = slow_replicas_.work_of(id)) {
      heartbeat.rounds = std::max(1, rounds_of(work->shards, work->at_once));
    }
    heartbeats.push_back(heartbeat);
  }
  if (const std::optional<Hang> hang = hang_detector_.look(heartbeats, Moment::clock::now())) {
    const auto& process = processes_.at(hang->member);
    const Registration& registration = options_.registration;
    const std::string hint =
        process->has_joined() ? "" : fmt::format("; it did not get to {}; {}", registration.call, registration.advice);
    feed({.kind = EventKind::hang_detected,
          .member = hang->member,
          .what = hang->what + hint,
          .step = step_of(hang->member)});
  }
}

// Compares members once all of them have reported what they compute.
void WatchdogLoop::look_for_stragglers() {
  if (state_.phase != RunPhase::running) return;
  std::vector<Load> loads;
  std::int64_t step = -1;
  for (const int id : by_rank_) {
    const auto process = processes_.find(id);
    const std::optional<ReplicaWork> work = slow_replicas_.work_of(id);
    // A comparison without one of the members would call another one slow.
    if (process == processes_.end() || !work) return;
    loads.push_back(process->second->load(id, work->shards, work->at_once));
    step = std::max(step, process->second->step());
  }
  for (Event& event : slow_replicas_.look(loads, step, Moment::clock::now())) feed(std::move(event));
}

ReplicaStarter::Handlers WatchdogLoop::handlers_of(int id) {
  const auto tell = [this, id](EventKind kind, const std::string& what) {
    feed({.kind = kind, .member = id, .what = what, .step = step_of(id)});
  };
  return {.on_message = [this, id](Message& message) { on_message(id, message.body); },
          .on_bad_message = [tell](const std::string& what) { tell(EventKind::failure_reported, what); },
          .on_failure =
              [this, id](const std::string& what, bool is_unrecoverable) {
                feed({.kind = EventKind::failure_reported,
                      .member = id,
                      .what = what,
                      .is_unrecoverable = is_unrecoverable,
                      .step = step_of(id)});
              },
          .on_death =
              [this, id, tell] {
                // After this the supervisor has it killed, which must not hide that it died by itself.
                if (!killed_.contains(id)) dead_by_themselves_.insert(id);
                tell(EventKind::died, "");
              },
          .on_exit = [this, id](ExitStatus status) { on_exit(id, status); },
          .on_swept = [this, id](int ended, bool is_any_left) { on_swept(id, ended, is_any_left); },
          .on_start_failed = [this, id](const Error& error) { on_start_failed(id, error); }};
}

void WatchdogLoop::on_exit(int id, ExitStatus status) {
  // A process that is seen to die is killed as well, before the kernel has reported how it ended.
  const bool is_killed_by_us = killed_.contains(id) && !dead_by_themselves_.contains(id);
  if (status.signal == SIGKILL && !is_killed_by_us) was_killed_from_outside_ = true;
  note_crash(id, status);
  const bool is_clean = status.code == 0 && status.signal == 0;
  Event event{
      .kind = EventKind::exited, .member = id, .exit_code = status.code, .signal = status.signal, .step = step_of(id)};
  // Any end of a plain program after the request is its way to stop.
  if (options_.is_plain_program && state_.is_stop_requested) {
    // It was asked to stop by a signal that ends most programs.
    event.what = status.signal == 0 ? fmt::format("left with code {}", status.code)
                                    : fmt::format("ended by signal {}", status.signal);
    // The code that the supervisor takes for a process that has obeyed.
    event.exit_code = kExitStopped;
    event.signal = 0;
  } else if (options_.is_plain_program && is_clean) {
    feed({.kind = EventKind::finished, .member = id});
  } else if (is_clean && !processes_.at(id)->has_joined()) {
    feed({.kind = EventKind::failure_reported,
          .member = id,
          .what =
              fmt::format("ended with code 0 without {}; {}", options_.registration.call, options_.registration.advice),
          .is_unrecoverable = true});
  }
  feed(std::move(event));
}

// After the crash a handler of the program's own may have ended it in another way.
void WatchdogLoop::note_crash(int id, ExitStatus status) {
  const auto& process = processes_.at(id);
  std::optional<Crash> crash = process->crash();
  if (!crash || status.signal == 0 || crash->signal != status.signal) return;
  crash_reader_.add({.member = id,
                     .rank = rank_of(id),
                     .pid = process->pid(),
                     .generation = state_.generation,
                     .started = process->started(),
                     .crash = std::move(*crash)});
}

void WatchdogLoop::tell_of_crashes(std::vector<CrashStory> crashes) {
  for (CrashStory& crash : crashes) {
    std::string text = fmt::format("{} crashed ({}) in", name_of({.id = crash.member, .rank = crash.rank}),
                                   signal_name(crash.crash.signal));
    const std::size_t shown = std::min(crash.frames.size(), kMostLoggedFrames);
    for (std::size_t i = 0; i < shown; ++i) text += fmt::format("\n    #{} {}", i, crash.frames[i]);
    if (shown < crash.frames.size()) text += "\n    (`holdfast report` has all)";
    // A program that crashes at each start has the same frames each time, so only the first is logged as a warning.
    const bool is_new = logged_crashes_.insert(crash.frames).second;
    log(is_new ? LogLevel::warning : LogLevel::debug, text);
    journal_.append({{"event", "crashed"},
                     {"generation", crash.generation},
                     {"member", crash.member},
                     {"rank", crash.rank},
                     {"pid", crash.pid},
                     {"signal", crash.crash.signal},
                     {"frames", std::move(crash.frames)}});
  }
}

void WatchdogLoop::on_swept(int id, int ended, bool is_any_left) {
  journal_.append({{"event", is_any_left ? "descendants_left" : "descendants_ended"},
                   {"generation", state_.generation},
                   {"member", id},
                   {"rank", rank_of(id)},
                   {"pid", pid_of(id)},
                   {"count", ended}});
  if (!is_any_left) return;
  log(LogLevel::warning,
      fmt::format("watchdog: processes that process {} had started are still there, although they were "
                  "killed; the run goes on without waiting for them",
                  id));
}

void WatchdogLoop::on_message(int id, const nlohmann::json& body) {
  const std::string kind = body.at("kind").get<std::string>();
  Event event{.member = id, .step = step_of(id)};
  if (kind == kJoined) {
    // Only now: the worker holds the mutex of its life page before it sends this message.
    processes_.at(id)->watch_for_death();
    if (!options_.is_plain_program) return;
    event.kind = EventKind::failure_reported;
    event.what = "registered as a worker, which a plain program never does; start it without --plain";
    event.is_unrecoverable = true;
  } else if (kind == kReady) {
    event.kind = EventKind::ready;
    feed(std::move(event));
    // A slow replica may have waited for this spare.
    for (Event& slow : slow_replicas_.slow_ones()) feed(std::move(slow));
    return;
  } else if (kind == kCheckedIn) {
    event.kind = EventKind::checked_in;
    event.generation = body.at("generation").get<int>();
    event.step = body.at("step").get<std::int64_t>();
  } else if (kind == kFinished) {
    // It may have trained to its end since the last tick. Without this look the cost of a failure would be unknown.
    look_for_progress();
    event.kind = EventKind::finished;
  } else if (kind == kFailure) {
    event.kind = EventKind::failure_reported;
    event.what = body.at("what").get<std::string>();
    event.is_unrecoverable = body.at("is_unrecoverable").get<bool>();
    // The run ends and another one starts in its place, so nothing is logged as a failure.
    if (body.contains(kOtherChoices) && may_give_way_) {
      outcome_.has_other_choices = true;
      other_choices_ = event.what;
    }
    event.is_thrown = body.value("is_thrown", false);
  } else if (kind == kEvent) {
    return note(id, body);
  } else if (kind == kWork) {
    return slow_replicas_.work_reported(id, body.at("generation").get<int>(), parse_work(body));
  } else if (kind == kSavepointMade) {
    return requests_.savepoint_made(body.at("number").get<int>(), body.at("path").get<std::string>(),
                                    body.at("step").get<std::int64_t>());
  } else if (kind == kSavepointNotMade) {
    return requests_.savepoint_not_made(body.at("number").get<int>(), body.at("why").get<std::string>());
  } else {
    event.kind = EventKind::failure_reported;
    event.what = fmt::format("sent a message of the unknown kind \"{}\"", kind);
  }
  feed(std::move(event));
}

void WatchdogLoop::note(int id, const nlohmann::json& body) {
  journal_.append({{"event", body.at("name")},
                   {"generation", state_.generation},
                   {"member", id},
                   {"rank", rank_of(id)},
                   {"pid", pid_of(id)},
                   {"details", body.at("details")}});
  if (body.at("name") == "savepoint_started") look_for_another_run();
}

// The savepoint would be taken for one of the other run, and end that run.
void WatchdogLoop::look_for_another_run() {
  if (own_directory_ == nullptr) {
    if (is_directory_taken_over(run_.lock(), options_.run_directory)) lose_directory();
    return;
  }
  if (own_directory_->is_looked_at.exchange(true)) return;
  // The next tick takes what the thread finds.
  folder_thread_->add(
      [own = own_directory_, directory = options_.run_directory] {
        if (is_directory_taken_over(own->lock, directory)) own->is_lost = true;
        own->is_looked_at = false;
      },
      0);
}

void WatchdogLoop::lose_directory() {
  feed({.kind = EventKind::directory_lost,
        .what = fmt::format("the run directory {} was removed, replaced or taken by another host while the run was "
                            "live, and another run has begun there; this one ends",
                            options_.run_directory)});
}

}  // namespace holdfast::recovery
