#pragma once

// What to do about everything that happens to the processes of a run, as a pure function: no clock, no process, no
// socket. The watchdog turns the world into events and carries the actions out.
//
// A member is one process, numbered for the whole run. A generation is the members that train together:
//
//   a member   starting -> ready -> training -> waiting        ready and waiting ones can be part of the next
//   generation;
//                             ^-----------'  <----'            a waiting one brings the state of training along
//              any -> finished, leaving or failed -> gone, when the kernel confirms its exit
//
//   the run    idle -> gathering <-> running -> finishing -> over
//                          any of them -> ending -> over       ending: all are killed, and a verdict is there
//
// A failure of a member ends the generation for all, but only the failed process dies: the others check in (waiting)
// and go on in the next generation, together with spares, new processes, or alone.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decide/place_changes.h"
#include "decide/restart_policy.h"
#include "holdfast/recovery/watchdog.h"

namespace holdfast::recovery {

enum class Stage { starting, ready, training, waiting, finished, leaving, failed };

struct Failure {
  std::string cause{};
  Moment detected{};
  int generation = 0;        // that it ended, or should have been part of
  std::int64_t step = -1;    // -1: not in a step
  bool is_explained = true;  // false: the exit status will say more
  // The first process that starts after it; -1: whoever failed was ready, or was part of a generation.
  int first_successor = -1;
};

struct Member {
  int id = 0;
  int place = 0;  // the device that it runs on, an index
  Stage stage = Stage::starting;
  int rank = -1;                     // in its newest generation; -1: in none yet
  std::int64_t step = -1;            // of the state that it waits with; -1: it has no whole one
  std::optional<Failure> failure{};  // not recorded yet
};

enum class RunPhase { idle, gathering, running, finishing, ending, over };

struct Verdict {
  int exit_code = 0;
  std::string sentence{};
  int unexplained = -1;  // the member with whose cause it ends, which its exit status will tell
};

struct SupervisorPolicy {
  RecoveryOptions recovery{};
  int replicas = 1;
  int places = 1;              // devices; member n starts on place n modulo places
  bool keep_survivors = true;  // false: any failure ends all processes, which start again from the newest savepoint
  bool all_start_together = false;  // with !keep_survivors: none starts before all that failed or were ended are gone
  int failures_of_a_step = 3;       // in as many processes: then it is the step that is to blame, and the run ends
  int failures_of_a_place = 3;      // one after the other, without progress: it is left out if there is another
  // Starts on one place that fail in the same way while no process of the run has ever got ready: then the run ends.
  int failures_of_a_start = 3;
  std::chrono::milliseconds longest_place_rest = std::chrono::hours(2);
  // Of a process that nobody waits for: its start would take processors from those who go on.
  std::chrono::milliseconds start_delay{0};
  RestartPolicy restart{};

  bool starts_when_gone() const { return recovery.start_when_gone.value_or(false); }
};

// How many shards each of these is to compute, by rank; both empty: as many as the others. It holds for them alone.
struct Deal {
  std::vector<int> members{};
  std::vector<int> shards{};
};

struct PendingStart {
  Moment due{};
  int place = 0;
  Moment at_latest{};  // also when a process that was killed is still there
};

// well -> resting (left out) -> on probation -> well, when a process that was started there has trained a step
//            ^-------------------' when one fails there
struct Place {
  int failures = 0;                          // in a row
  int times_left_out = 0;                    // since it was last well for longest_place_rest
  std::optional<Moment> rest_ends{};         // empty: it is well
  std::optional<Moment> well_since{};        // empty: it was never left out, or is not well
  std::string why{};                         // it was left out the last time
  int first_on_trial = 0;                    // the members from this one on were started there to try it
  std::optional<Moment> slow_replaced_at{};  // when a process there was last replaced for being slow
  bool is_slow = false;                      // whoever runs there is
  // Of starts there, one after the other, for the same cause; those that began together count as one.
  int failed_starts = 0;
  std::string start_cause{};
  int next_start = 0;  // the first process whose failure would be a further one
};

struct State {
  SupervisorPolicy policy;
  RunPhase phase = RunPhase::idle;
  int generation = -1;      // the one that runs or ran last
  int next_generation = 0;  //
  int target = 1;           // replicas that a generation should have
  int finished = 0;         // members that have
  int next_member = 0;
  std::vector<Member> members;  // those whose processes may still be there, by id
  std::vector<PendingStart> pending_starts;
  std::vector<Place> places;
  Deal deal;  // of the next generation that has these members
  RestartHistory history;
  RestartHistory newcomers;         // of processes that failed before they were in a generation, while others went on
  std::int64_t failed_step = -1;    // of the newest failure in a step
  int failures_of_step = 0;         // one a generation at most
  int blamed_generation = -1;       // the newest that counts there
  int failed_generation = -1;       // the newest that lost a member: more of them share its pause
  bool was_any_ready = false;       // since the watchdog started
  bool is_regroup_asked = false;    // of the running generation
  bool is_end_unexplained = false;  // of the newest generation: a member left it unasked, and none has failed
  bool is_stop_requested = false;
  Moment stop_requested_at{};        // for the first time
  std::optional<Verdict> verdict;    // what ends the run as soon as all processes are gone
  std::optional<Moment> give_up_at;  // on processes that should leave, or should be dead
  std::optional<Moment> timer;       // as it was set last
};

enum class EventKind {
  start,
  ready,             // the process is initialised and waits to be part of a generation
  checked_in,        // it has left its generation and waits for the next; step: of its state, -1 if that is not whole
  progressed,        // the generation got further than the run ever was; step
  finished,          //
  failure_reported,  // what, is_unrecoverable, step
  device_failed,     // what: happened to the device that it runs on; step
  died,              // seen by its life mutex; the exit is not confirmed yet; step
  exited,            // exit_code or signal; step
  hang_detected,     // what, step
  slow,              // what: it computes more slowly than the others, and a spare should take its place
  start_failed,      // what; there is no process
  scale_requested,   // count
  deal_proposed,     // generation; shards by rank; what: why
  place_lost,        // place; what: happened to its device, which is of no use any more
  stop_requested,    // signal
  directory_lost,    // what: another run has begun in the run directory, so that nothing may be written there
  timer,
};

struct Event {
  EventKind kind = EventKind::start;
  int member = 0;       // an event of one that is gone is dropped. No meaning for events of the run
  int generation = -1;  // of progressed, checked_in and deal_proposed: an earlier one's is dropped
  std::string what{};
  bool is_unrecoverable = false;
  bool is_thrown = false;  // by the program, not by Holdfast
  int exit_code = 0;
  int signal = 0;  // 0: none
  std::int64_t step = -1;
  int count = 0;
  int place = 0;
  bool is_joining = false;  // the process has not got to the steps of its generation yet
  std::vector<int> shards{};
};

enum class ActionKind {
  start_process,      // member, place
  cancel_generation,  // generation: end every wait in its shared memory
  kill_process,       // member
  open_generation,    // generation, members by rank, shards by rank (empty: evenly dealt): tell each of them
  ask_to_regroup,     // all members of the generation, at their next step boundary
  ask_to_stop,        // all members of the generation
  set_timer,          // moment: replaces the timer before
  record_failure,     // member, rank, generation, text (the cause), moment (when detected), step
  finish,             // exit_code, text (the sentence)
};

struct Action {
  ActionKind kind = ActionKind::start_process;
  int member = 0;
  int place = 0;
  int generation = 0;
  std::vector<int> members{};
  std::vector<int> shards{};
  int rank = 0;
  std::int64_t step = -1;
  int exit_code = 0;
  std::string text{};
  Moment moment{};
};

struct Decision {
  State state;
  std::vector<Action> actions;  // in the order in which they are to be carried out
  std::string reason;
  bool is_of_a_failure = false;              // or of a place that is left out
  std::vector<PlaceChange> place_changes{};  // for those who read of it later
};

State initial_state(const SupervisorPolicy& policy, int first_generation);
Decision decide(const State& state, const Event& event, Moment now);

// Of no member: `member` has no meaning then.
bool is_of_the_run(EventKind kind);

// Empty when the member is gone.
const Member* find_member(const State& state, int id);

std::string_view to_string(EventKind kind);
std::string_view to_string(ActionKind kind);
std::string_view to_string(Stage stage);
std::string_view to_string(RunPhase phase);
// One line, such as "set_timer in 0.100 s" or "record_failure of member 1: exited with code 3".
std::string describe(const Action& action, Moment now);

}  // namespace holdfast::recovery
