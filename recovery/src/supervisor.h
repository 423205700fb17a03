#pragma once

// What to do about everything that happens to the replicas of a run, as a pure function: no clock, no process, no
// socket. The watchdog turns the world into events and carries the actions out.
//
//              all registered            all finished            all exited
//   idle -> running ---------- running ------------- finishing ------------- over
//              |  \                                                          ^ ^
//      failure |   \ stop requested          all exited                      | |
//              |    `--------- stopping -------------------------------------' |
//              v                  | failure, or not gone in time               |
//           killing <-------------'                                            |
//              | all exited: verdict, budget spent ----------------------------'
//              | else
//              v   timer                    any failure ends the generation for all its replicas; a mode in which
//         backing_off -> running            survivors stay would go from killing to running with fewer kills

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "restart_policy.h"

namespace holdfast::recovery {

enum class ReplicaState { starting, running, finished, failed };

struct ReplicaStatus {
  ReplicaState state = ReplicaState::starting;
  bool has_exited = false;  // confirmed by the kernel; memory shared with it can go
};

enum class RunPhase { idle, running, stopping, finishing, killing, backing_off, over };

struct Failure {
  int rank = 0;
  std::string cause{};
  Moment detected{};
  bool is_explained = true;  // false: the exit status will say more
};

struct Verdict {
  int exit_code = 0;
  std::string sentence{};
};

struct State {
  RestartPolicy policy;
  int generation = 0;
  RunPhase phase = RunPhase::idle;
  std::vector<ReplicaStatus> replicas;
  RestartHistory history;
  std::optional<Failure> failure;  // what ended the generation
  std::optional<Verdict> verdict;  // what ends the run as soon as all processes are gone
  std::optional<Moment> timer;
};

enum class EventKind {
  start,
  registered,
  progressed,        // the generation got further than the run ever was
  finished,          //
  failure_reported,  // what, is_unrecoverable
  died,              // seen by its life mutex; the exit is not confirmed yet
  exited,            // exit_code or signal
  hang_detected,     // what
  start_failed,      // what; there is no process
  stop_requested,    // signal
  timer,
};

struct Event {
  EventKind kind = EventKind::start;
  int generation =
      0;  // of the replica; an event of an earlier one is dropped. No meaning for start, stop_requested, timer
  int rank = 0;
  std::string what{};
  bool is_unrecoverable = false;
  int exit_code = 0;
  int signal = 0;  // 0: none
};

enum class ActionKind {
  start_generation,   // generation: start all its processes
  open_generation,    // tell every replica its generation, rank and peers
  cancel_generation,  // end every wait in shared memory
  kill_all,           //
  ask_to_stop,        //
  set_timer,          // moment: replaces the timer before
  record_restart,     // rank, text (the cause), moment (when detected)
  finish,             // exit_code, text (the sentence)
};

struct Action {
  ActionKind kind = ActionKind::start_generation;
  int generation = 0;
  int rank = 0;
  int exit_code = 0;
  std::string text{};
  Moment moment{};
};

struct Decision {
  State state;
  std::vector<Action> actions;  // in the order in which they are to be carried out
  std::string reason;
};

State initial_state(int replicas, const RestartPolicy& policy, int first_generation);
Decision decide(const State& state, const Event& event, Moment now);

std::string_view to_string(EventKind kind);
// One line, such as "set_timer in 0.100 s" or "record_restart rank 1: exited with code 3".
std::string describe(const Action& action, Moment now);

}  // namespace holdfast::recovery
