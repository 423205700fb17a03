#pragma once

// Decides what the watchdog does about each event of a run. decide() is a pure function: it reads no clock, and it
// touches no process and no socket. The watchdog turns what it sees into events, and carries out the actions.
//
// A member is one process, numbered for the whole run. A generation is the members that train together.
//
//   a member:   starting --> ready --> training --> waiting      The next generation takes ready and waiting members.
//                                         ^------------'         A waiting member brings the state of the training.
//
//               any stage --> finished, leaving or failed --> gone, when the kernel confirms the exit
//               any able stage --> unreachable, when its host is lost --> ready or gone, when the host is back
//
//   the run:    idle --> gathering <--> running --> finishing --> over
//                        any phase  --> ending  --> over         ending: all members are killed; how it ends is known
//
// When a member fails, its generation ends for all, but only the failed process dies. The survivors check in (waiting).
// They go on in the next generation: with spares, with new processes, or alone. See docs/decisions/recovery.md.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decide/device_slot_changes.h"
#include "decide/restart_policy.h"
#include "holdfast/recovery/watchdog_options.h"

namespace holdfast::recovery {

// unreachable: its host is lost, and nobody knows what it does. It is able again if it lives when the host is back.
enum class Stage { starting, ready, training, waiting, finished, leaving, failed, unreachable };

// What a failure's cause says.
enum class CauseKind {
  reported,     // what the process or its host said, or what the watchdog saw
  unknown,      // that it died; the exit status will name the cause
  exit_status,  // how the process ended
};

struct Failure {
  std::string cause{};
  CauseKind kind = CauseKind::reported;
  Moment detected{};
  int generation = 0;      // the one that it ended, or that the member was started for
  std::int64_t step = -1;  // -1: not in a step
  // The id of the next process to start; -1: the failed member had already been ready.
  int first_successor = -1;
};

struct Member {
  int id = 0;
  int device_slot = 0;  // index of the device slot that it runs on
  int host = 0;         // that has the device slot
  Stage stage = Stage::starting;
  int rank = -1;                     // in its newest generation; -1: it was in none
  std::int64_t step = -1;            // step of the state that a waiting member holds; -1: it holds no whole state
  std::optional<Failure> failure{};  // one that is not recorded yet
  bool is_fenced = false;            // an unreachable member surely neither trains nor writes any more
};

// A host of a run that has several. Host 0 has the head and is always there.
//
//   awaited --> there <--> lost      there --> leaving
//
struct Host {
  enum class Stage { awaited, there, lost, leaving };

  Stage stage = Stage::awaited;
  bool is_fenced = false;  // once it is lost: its fence has run out, so nothing there trains or writes any more
  // For people, of a host that is lost or leaving.
  bool was_asked_to_leave = false;  // so losing it is not a failure
  Moment away_since{};
  std::string why_away{};  // empty if it was asked to leave
};

// Two hosts that reach the head, but not each other. No generation with members on both would do a step.
struct HostsCut {
  int one = 0;
  int other = 0;  // has the higher number
  std::string why{};
};

enum class RunPhase { idle, gathering, running, finishing, ending, over };

// The failure after which a run ends.
struct LastFailure {
  int member = -1;    // -1: of a host, or of several members
  std::string who{};  // the member as name_of() called it; empty: the cause says it
  std::string cause{};
};

// How a run ends. It is kept in parts: an exit status may still replace the cause, and IncidentStory tells the parts in
// another order. sentence_of() makes the sentence of it.
struct RunEnding {
  int exit_code = 0;
  std::string reason{};  // empty: the failure is the reason
  std::optional<LastFailure> failure{};
  bool is_of_starts = false;  // no process has got ready, and all starts failed as the last one
  std::string advice{};       // of is_of_starts, the end of the reason: what to do
};

struct SupervisorPolicy {
  RecoveryOptions recovery{};
  // A successor waits until the processes before it on its device slot are gone.
  bool starts_when_gone = false;
  int replicas = 1;
  int device_slots = 1;  // device slots; at the start, member n runs on slot n modulo this
  int hosts = 1;
  std::vector<int> slot_hosts{};  // the host of each device slot; empty: all are on host 0
  // For hosts to join the run at its start; one that is missing then ends the run.
  std::chrono::milliseconds join_timeout = std::chrono::minutes(10);
  bool keep_survivors = true;       // false: a failure ends all members of the generation; all resume from a savepoint
  bool all_start_together = false;  // with !keep_survivors: no process starts before all ended processes are gone
  int failures_of_a_step = 3;       // in as many generations: the step is to blame, and the run ends
  int failures_of_a_slot = 3;       // in a row, without progress: the slot is left out if another slot can be used
  // Equal failures of starts on one device slot, before any process of the run was ready: the run ends.
  int failures_of_a_start = 3;
  // As many for starts that end by SIGKILL: it comes from elsewhere, and may pass. Where memory runs out, it does not.
  int kills_of_a_start = 5;
  // A device slot that was left out rests for recovery.place_rest. Each further rest is twice as long, up to this.
  std::chrono::milliseconds longest_slot_rest = std::chrono::hours(2);
  // Before a start that no survivor waits for: starting at once would take processors from those that go on.
  std::chrono::milliseconds start_delay{0};
  RestartPolicy restart{};

  int host_of(int slot) const { return slot_hosts.empty() ? 0 : slot_hosts.at(static_cast<std::size_t>(slot)); }
};

// An assignment of shards: how many each of these members computes. Both lists are in rank order. It is valid for
// exactly these members; when it is empty, shards are assigned evenly.
struct MemberAssignment {
  std::vector<int> members{};
  std::vector<int> shards{};
};

struct PendingStart {
  Moment due{};
  int device_slot = 0;
  Moment at_latest{};  // then it starts even next to a killed process that is not gone
};

// A device slot:
//
//   well --> resting (left out) --> on probation --> well, when a process that was started there has trained a step
//                 ^--------------------' when a process fails there
struct DeviceSlot {
  int failures = 0;                          // of processes on it, in a row
  int times_left_out = 0;                    // since it was last well for longest_slot_rest
  std::optional<Moment> rest_ends{};         // empty: it is well
  std::optional<Moment> well_since{};        // empty: it was never left out, or it is not well
  std::string why{};                         // the reason why it was last left out
  int first_on_trial = 0;                    // members from this id on were started there to try it
  std::optional<Moment> slow_replaced_at{};  // when a process there was last replaced for being slow
  bool is_slow = false;                      // two processes there were slow, so the slot itself is
  // Starts that failed here in a row with the same cause. Processes that started together count once.
  int failed_starts = 0;
  int killed_starts = 0;  // in a row, by SIGKILL
  std::string start_cause{};
  int next_start = 0;  // a failure counts again from this member id on
};

struct State {
  SupervisorPolicy policy;
  RunPhase phase = RunPhase::idle;
  int generation = -1;  // the newest one
  int next_generation = 0;
  int target = 1;    // replicas that a generation should have
  int finished = 0;  // members that have finished
  int next_member = 0;
  std::vector<Member> members;  // those whose exit is not confirmed, by id
  std::vector<PendingStart> pending_starts;
  std::vector<DeviceSlot> device_slots;
  std::vector<Host> hosts;
  std::optional<Moment> hosts_awaited_until;  // while one of them has not joined
  std::optional<HostsCut> cut;                // one of the two has to go before the next generation opens
  MemberAssignment assignment;                // for the next generation, if that has the same members
  RestartHistory history;
  RestartHistory newcomers;         // restarts of newcomers that failed while others went on
  std::int64_t failed_step = -1;    // the step that failed last
  int failures_of_step = 0;         // generations in which it failed
  int blamed_generation = -1;       // the last of these
  int failed_generation = -1;       // the newest that lost a member; its further losses share one pause
  bool was_any_ready = false;       // since the watchdog started
  bool has_progressed = false;      // since the watchdog started
  bool is_regroup_asked = false;    // in the running generation
  bool is_end_unexplained = false;  // a member left the newest generation unasked, and no member failed
  bool is_stop_requested = false;
  Moment stop_requested_at{};        // by the first request
  std::optional<RunEnding> ending;   // how the run ends as soon as all processes are gone
  std::optional<Moment> give_up_at;  // the deadline for processes to leave, or to be gone after SIGKILL
  std::optional<Moment> timer;       // as last set
};

enum class EventKind {
  start,
  ready,                // the process is initialised and can join a generation
  checked_in,           // it left its generation and waits for the next; step: of its state, -1 if that is not whole
  progressed,           // the generation got further than the run ever had; step
  finished,             // its work is done
  failure_reported,     // by the process itself; what, is_unrecoverable, step
  device_failed,        // the device under the process failed; what, step
  died,                 // its life mutex shows it; the kernel has not confirmed the exit; step
  exited,               // the kernel confirmed it; exit_code or signal, step
  hang_detected,        // it makes no progress; what, step
  slow,                 // it computes more slowly than the others, and a spare should replace it; what
  start_failed,         // no process could be made; what
  scale_requested,      // count: of replicas
  assignment_proposed,  // another assignment of shards; generation, shards by rank, what: the reason
  device_slot_lost,     // the driver reports that a device is lost; device_slot, what
  stop_requested,       // signal
  directory_lost,       // another run has begun in the run directory, so nothing may be written there; what
  host_joined,          // host: its agent has joined the run, for the first time
  host_lost,            // host: its agent is gone, or does not answer; what
  fence_passed,         // host, which is lost: nothing there trains or writes any more
  host_returned,        // host, which was lost; members that live there and are in no generation, steps of their states
  host_leaving,         // host: it was asked to leave the run; signal
  hosts_cut,  // host and peer have no connection for a generation, though both have the head; generation, what
  timer,
};

struct Event {
  EventKind kind = EventKind::start;
  int member = 0;       // an event of a member that is gone is dropped; unused in events of the run
  int generation = -1;  // in progressed, checked_in and assignment_proposed: events of earlier generations are dropped
  std::string what{};
  bool is_unrecoverable = false;
  bool is_thrown = false;  // an exception of the program, not of Holdfast
  int exit_code = 0;
  int signal = 0;  // 0: none
  std::int64_t step = -1;
  int count = 0;
  int device_slot = 0;
  bool is_joining = false;  // the process has not reached the steps of its generation yet
  std::vector<int> shards{};
  int host = 0;
  int peer = 0;  // another host
  std::vector<int> members{};
  std::vector<std::int64_t> steps{};  // of the states of `members`; -1: that is not whole
};

enum class ActionKind {
  start_process,      // member, device_slot
  cancel_generation,  // generation: end every wait in its shared memory
  kill_process,       // member
  open_generation,    // generation, members by rank, shards by rank (empty: assigned evenly): tell each member
  ask_to_regroup,     // ask all members of the generation to leave it at their next step boundary
  ask_to_stop,        // ask all members of the generation to save and leave
  set_timer,          // moment: replaces the timer that was set before
  record_failure,     // member, rank, generation, text (the cause), cause_kind, moment (when detected), step
  finish,             // exit_code, text (the sentence)
};

struct Action {
  ActionKind kind = ActionKind::start_process;
  int member = 0;
  int device_slot = 0;
  int generation = 0;
  std::vector<int> members{};
  std::vector<int> shards{};
  std::vector<int> hosts{};  // of open_generation: the host of each rank; empty for a run of a single host
  int rank = 0;
  std::int64_t step = -1;
  int exit_code = 0;
  std::string text{};
  CauseKind cause_kind = CauseKind::reported;
  Moment moment{};
};

struct Decision {
  State state;
  std::vector<Action> actions;                          // to be carried out in this order
  std::string reason;                                   // for the journal and the log: clauses, separated by "; "
  bool is_of_a_failure = false;                         // a member failed, or a device slot is left out
  std::vector<DeviceSlotChange> device_slot_changes{};  // for the journal
};

State initial_state(const SupervisorPolicy& policy, int first_generation);
Decision decide(const State& state, const Event& event, Moment now);

// Whether the event is about the whole run. Its `member` is unused then.
bool is_of_the_run(EventKind kind);
// Whether the event is about one of its hosts.
bool is_of_a_host(EventKind kind);

// Null when the member is gone.
const Member* find_member(const State& state, int id);

std::string_view to_string(EventKind kind);
std::string_view to_string(ActionKind kind);
std::string_view to_string(Stage stage);
std::string_view to_string(RunPhase phase);
std::string_view to_string(Host::Stage stage);

}  // namespace holdfast::recovery
