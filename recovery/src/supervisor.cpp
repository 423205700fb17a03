#include "supervisor.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "holdfast/base/error.h"
#include "holdfast/recovery/watchdog.h"

namespace holdfast::recovery {
namespace {

std::string seconds(Moment::duration duration) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", std::chrono::duration<double>(duration).count());
  return text;
}

std::string replica(int rank) {
  return "replica " + std::to_string(rank);
}

std::string signal_name(int signal) {
  const char* abbreviation = ::sigabbrev_np(signal);
  return abbreviation == nullptr ? "signal " + std::to_string(signal) : "SIG" + std::string(abbreviation);
}

std::string describe_exit(const Event& event) {
  if (event.signal != 0)
    return "killed by signal " + std::to_string(event.signal) + " (" + signal_name(event.signal) + ")";
  if (event.exit_code == 0) return "exited with code 0 without having finished";
  return "exited with code " + std::to_string(event.exit_code);
}

bool is_of_a_replica(EventKind kind) {
  return kind != EventKind::start && kind != EventKind::stop_requested && kind != EventKind::timer;
}

class Decider {
 public:
  Decider(const State& state, const Event& event, Moment now) : state_(state), event_(event), now_(now) {}

  Decision decide() {
    if (is_of_a_replica(event_.kind)) {
      on_replica_event();
    } else if (event_.kind == EventKind::start) {
      HOLDFAST_ASSERT(state_.phase == RunPhase::idle);
      begin(state_.generation);
    } else if (event_.kind == EventKind::stop_requested) {
      on_stop_requested();
    } else {
      on_timer();
    }
    return {std::move(state_), std::move(actions_), std::move(reason_)};
  }

 private:
  void on_replica_event() {
    const std::string late =
        std::string(to_string(event_.kind)) + " of generation " + std::to_string(event_.generation);
    if (event_.generation != state_.generation) {
      return because(late + " is dropped: generation " + std::to_string(state_.generation) + " is the current one");
    }
    if (state_.phase == RunPhase::idle || state_.phase == RunPhase::backing_off || state_.phase == RunPhase::over) {
      return because(late + " is dropped: all its processes are gone");
    }
    switch (event_.kind) {
      case EventKind::registered:
        return on_registered();
      case EventKind::progressed:
        return on_progressed();
      case EventKind::finished:
        return on_finished();
      case EventKind::failure_reported:
      case EventKind::hang_detected:
        return on_failure(event_.what, true);
      case EventKind::died:
        return on_failure("died without a report", false);
      case EventKind::start_failed:
        return on_start_failed();
      default:
        return on_exited();
    }
  }

  void on_registered() {
    subject().state = ReplicaState::running;
    because(replica(event_.rank) + " is ready");
    if (state_.phase != RunPhase::running || has_any(ReplicaState::starting)) return;
    because("all are");
    act({.kind = ActionKind::open_generation, .generation = state_.generation});
  }

  void on_progressed() {
    state_.history.without_progress = 0;
    because("the run got further than ever before");
  }

  void on_finished() {
    subject().state = ReplicaState::finished;
    because(replica(event_.rank) + " has finished");
    if (state_.phase != RunPhase::running || !all(ReplicaState::finished)) return;
    because("all have; they have " + seconds(state_.policy.stop_grace) + " to leave");
    state_.phase = RunPhase::finishing;
    set_timer(state_.policy.stop_grace);
  }

  void on_failure(const std::string& cause, bool is_explained) {
    if (subject().state == ReplicaState::finished) {
      return because(replica(event_.rank) + " had finished, so this changes nothing: " + cause);
    }
    subject().state = ReplicaState::failed;
    fail(cause, is_explained);
  }

  void on_start_failed() {
    subject().has_exited = true;
    on_failure("cannot be started: " + event_.what, true);
    conclude_if_all_are_gone();
  }

  void on_exited() {
    subject().has_exited = true;
    const std::string how = describe_exit(event_);
    if (is_expected_exit()) {
      because(replica(event_.rank) + " is gone");
    } else {
      subject().state = ReplicaState::failed;
      fail(how, true);
    }
    if (state_.failure && state_.failure->rank == event_.rank && !state_.failure->is_explained) {
      state_.failure->cause = how;
      state_.failure->is_explained = true;
    }
    conclude_if_all_are_gone();
  }

  bool is_expected_exit() const {
    if (state_.phase == RunPhase::killing || subject().state == ReplicaState::finished) return true;
    const bool is_clean = event_.signal == 0 && (event_.exit_code == 0 || event_.exit_code == kExitStopped);
    return state_.phase == RunPhase::stopping && is_clean;
  }

  void fail(const std::string& cause, bool is_explained) {
    const std::string sentence = replica(event_.rank) + ": " + cause;
    because(sentence);
    const bool is_killing = state_.phase == RunPhase::killing;
    if (event_.is_unrecoverable && !state_.verdict) {
      state_.verdict = {kExitUnrecoverable, sentence};
    } else if (state_.phase == RunPhase::stopping) {
      state_.verdict = {kExitStopped, "stopped as asked, but not in order: " + sentence};
    }
    if (is_killing) return because("the generation is being ended already");
    state_.failure = Failure{event_.rank, cause, now_, is_explained};
    end_generation();
  }

  void end_generation() {
    state_.phase = RunPhase::killing;
    state_.timer.reset();
    act({.kind = ActionKind::cancel_generation, .generation = state_.generation});
    if (all_are_gone()) return;
    act({.kind = ActionKind::kill_all, .generation = state_.generation});
    set_timer(state_.policy.kill_timeout);
  }

  void end_run_with(int exit_code, const std::string& sentence) {
    state_.verdict = {exit_code, sentence};
    end_generation();
  }

  void conclude_if_all_are_gone() {
    if (!all_are_gone()) return;
    because("all processes of generation " + std::to_string(state_.generation) + " are gone");
    if (state_.verdict) {
      finish(state_.verdict->exit_code, state_.verdict->sentence);
    } else if (all(ReplicaState::finished)) {
      finish(kExitFinished, "finished");
    } else if (state_.phase == RunPhase::stopping) {
      finish(kExitStopped, stopped());
    } else {
      restart();
    }
  }

  void restart() {
    const Failure& failure = *state_.failure;
    const RestartPolicy& policy = state_.policy;
    if (!allows_restart(policy, state_.history, now_)) {
      return finish(kExitGaveUp, "gave up after " + std::to_string(policy.max_restarts) + " restarts within " +
                                     seconds(policy.restart_window) + "; the last failure was " +
                                     replica(failure.rank) + " in generation " + std::to_string(state_.generation) +
                                     ": " + failure.cause);
    }
    act({.kind = ActionKind::record_restart,
         .generation = state_.generation,
         .rank = failure.rank,
         .text = failure.cause,
         .moment = failure.detected});
    state_.history = with_restart(policy, std::move(state_.history), now_);
    const std::chrono::milliseconds pause = pause_before(policy, state_.history);
    because("restart " + std::to_string(state_.history.restarts.size()) + " of at most " +
            std::to_string(policy.max_restarts) + " within " + seconds(policy.restart_window));
    if (pause == std::chrono::milliseconds::zero()) return begin(state_.generation + 1);
    because("in " + seconds(pause) + ", since there was no progress after the one before");
    state_.phase = RunPhase::backing_off;
    set_timer(pause);
  }

  void begin(int generation) {
    because("generation " + std::to_string(generation) + " starts with " + std::to_string(state_.replicas.size()) +
            " replicas");
    state_.generation = generation;
    state_.phase = RunPhase::running;
    state_.failure.reset();
    state_.timer.reset();
    std::fill(state_.replicas.begin(), state_.replicas.end(), ReplicaStatus{});
    act({.kind = ActionKind::start_generation, .generation = generation});
  }

  void on_stop_requested() {
    because(signal_name(event_.signal) + " came");
    switch (state_.phase) {
      case RunPhase::running:
        return stop_running();
      case RunPhase::stopping:
        return end_run_with(kExitStopped, "stopped at once by a second signal");
      case RunPhase::finishing:
        return end_run_with(kExitFinished, "finished");
      case RunPhase::backing_off:
        return finish(kExitStopped, stopped());
      case RunPhase::killing:
        if (!state_.verdict) state_.verdict = {kExitStopped, stopped()};
        return because("the run ends as soon as all processes are gone");
      case RunPhase::idle:
      case RunPhase::over:
        return because("nothing runs");
    }
  }

  void stop_running() {
    if (has_any(ReplicaState::starting)) {
      because("training has not begun, so there is nothing to save");
      return end_run_with(kExitStopped, stopped());
    }
    because("replicas have " + seconds(state_.policy.stop_grace) + " to save and leave");
    state_.phase = RunPhase::stopping;
    act({.kind = ActionKind::ask_to_stop, .generation = state_.generation});
    set_timer(state_.policy.stop_grace);
  }

  void on_timer() {
    if (!state_.timer || now_ < *state_.timer) return because("a timer that was replaced is dropped");
    state_.timer.reset();
    const std::string remaining = ranks_that_remain();
    switch (state_.phase) {
      case RunPhase::backing_off:
        return begin(state_.generation + 1);
      case RunPhase::stopping:
        because(remaining + " did not leave in time");
        return end_run_with(kExitStopped, "stopped as asked, but " + remaining + " had to be killed after " +
                                              seconds(state_.policy.stop_grace));
      case RunPhase::finishing:
        because(remaining + " did not leave in time");
        return end_run_with(kExitFinished, "finished");
      default:
        because(remaining + " cannot be killed");
        return finish(kExitGaveUp, "gave up: " + remaining + " did not end within " +
                                       seconds(state_.policy.kill_timeout) + " of SIGKILL");
    }
  }

  std::string ranks_that_remain() const {
    std::string ranks;
    for (std::size_t rank = 0; rank < state_.replicas.size(); ++rank) {
      if (!state_.replicas[rank].has_exited) ranks += (ranks.empty() ? "replica " : ", ") + std::to_string(rank);
    }
    return ranks;
  }

  static std::string stopped() { return "stopped as asked; start the same command again to go on"; }

  void finish(int exit_code, const std::string& sentence) {
    state_.phase = RunPhase::over;
    state_.timer.reset();
    act({.kind = ActionKind::finish, .exit_code = exit_code, .text = sentence});
  }

  void set_timer(Moment::duration delay) {
    state_.timer = now_ + delay;
    act({.kind = ActionKind::set_timer, .moment = now_ + delay});
  }

  void act(Action action) { actions_.push_back(std::move(action)); }

  void because(const std::string& clause) { reason_ += (reason_.empty() ? "" : "; ") + clause; }

  ReplicaStatus& subject() { return state_.replicas.at(event_.rank); }
  const ReplicaStatus& subject() const { return state_.replicas.at(event_.rank); }

  bool has_any(ReplicaState wanted) const {
    return std::any_of(state_.replicas.begin(), state_.replicas.end(),
                       [&](const auto& r) { return r.state == wanted; });
  }

  bool all(ReplicaState wanted) const {
    return std::all_of(state_.replicas.begin(), state_.replicas.end(),
                       [&](const auto& r) { return r.state == wanted; });
  }

  bool all_are_gone() const {
    return std::all_of(state_.replicas.begin(), state_.replicas.end(), [](const auto& r) { return r.has_exited; });
  }

  State state_;
  const Event& event_;
  Moment now_;
  std::vector<Action> actions_;
  std::string reason_;
};

}  // namespace

State initial_state(int replicas, const RestartPolicy& policy, int first_generation) {
  State state;
  state.policy = policy;
  state.generation = first_generation;
  state.replicas.resize(static_cast<std::size_t>(replicas));
  return state;
}

Decision decide(const State& state, const Event& event, Moment now) {
  return Decider(state, event, now).decide();
}

std::string_view to_string(EventKind kind) {
  switch (kind) {
    case EventKind::start:
      return "start";
    case EventKind::registered:
      return "registered";
    case EventKind::progressed:
      return "progressed";
    case EventKind::finished:
      return "finished";
    case EventKind::failure_reported:
      return "failure_reported";
    case EventKind::died:
      return "died";
    case EventKind::exited:
      return "exited";
    case EventKind::hang_detected:
      return "hang_detected";
    case EventKind::start_failed:
      return "start_failed";
    case EventKind::stop_requested:
      return "stop_requested";
    case EventKind::timer:
      return "timer";
  }
  return "unknown";
}

std::string describe(const Action& action, Moment now) {
  switch (action.kind) {
    case ActionKind::start_generation:
      return "start_generation " + std::to_string(action.generation);
    case ActionKind::open_generation:
      return "open_generation " + std::to_string(action.generation);
    case ActionKind::cancel_generation:
      return "cancel_generation " + std::to_string(action.generation);
    case ActionKind::kill_all:
      return "kill_all";
    case ActionKind::ask_to_stop:
      return "ask_to_stop";
    case ActionKind::set_timer:
      return "set_timer in " + seconds(action.moment - now);
    case ActionKind::record_restart:
      return "record_restart " + replica(action.rank) + ": " + action.text;
    case ActionKind::finish:
      return "finish " + std::to_string(action.exit_code) + ": " + action.text;
  }
  return "unknown";
}

}  // namespace holdfast::recovery
