#pragma once

// Which faults are to strike a run, and where: as users write them, as plan files list them, and as a seed draws them.
// For tests of recovery. These functions are pure: they describe faults, and faults.h makes them strike.
//
// A specification is KEY=VALUE,...
//
//   rank=1,step=120,fault=kill                          phase=forward is the default
//   rank=0,step=300,fault=full-disk,phase=writing,count=3
//   rank=2,phase=rendezvous,generation=1,fault=stop     during the recovery from another failure
//
// rank= and fault= are required; so is step= in phases that belong to a step. Spares have the ranks after those of the
// replicas until they become replicas. FaultKind says what each kind does, and which of duration_ms, factor, count,
// seed and target it takes.
//
//   for (const Fault& fault : parse_fault_plan(text, ranks)) std::printf("%s\n", to_string(fault).c_str());

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/base/fault_point.h"

namespace holdfast::recovery {

// The value of phase=: where in the run a fault strikes.
using FaultPhase = FaultPoint;

// The value of fault=. A text in quotes is another spelling than the enumerator's. Defaults are in parentheses.
enum class FaultKind {
  kill,             // SIGKILL to itself
  stop,             // SIGSTOP to itself, without a later SIGCONT
  pause,            // SIGSTOP to itself, and SIGCONT after duration_ms (500)
  segfault,         // writes to memory that may not be written
  exit0,            // leaves with exit code 0, without a report
  exit1,            // the same with code 1
  exit,             // the same with code 3
  throw_exception,  // "throw": throws std::runtime_error
  terminate,        // calls std::terminate()
  loop,             // computes endlessly without progress
  hang,             // sleeps endlessly without progress; "sleep" too
  slow,             // computing takes `factor` (2) times as long, for `count` steps (all)
  oom,              // takes memory until std::bad_alloc is thrown
  close_channel,    // "close-channel": shuts down the channel to the watchdog
  garbage,          // sends bytes drawn from `seed` (0) to the watchdog
  nan,              // puts a NaN into `target` (loss), at an index drawn from `seed`
  flip,             // changes one bit of `target` (weight), drawn from `seed`
  lose_beats,       // "lose-beats": sends no more heartbeats, but goes on working
  delay_beats,      // "delay-beats": sends no heartbeats for duration_ms (2000)
  full_disk,        // "full-disk": from here on `count` (all) operations on savepoints that need space fail with ENOSPC
  io_error,         // "io-error": from here on `count` (all) operations on savepoints fail with EIO
  damage,           // flips bytes, drawn from `seed`, of the newest savepoint in the run directory; SIGKILL to itself
  kill_watchdog,    // "kill-watchdog": SIGKILL to the watchdog
};

// The value of target=: what `nan` and `flip` change one float of.
using CorruptionTarget = FaultTarget;

// One fault, as a specification describes it.
struct Fault {
  int rank = 0;                            // of the replica or spare that it strikes
  std::optional<std::int64_t> step{};      // empty: the first step that reaches the phase
  FaultPhase phase = FaultPhase::forward;  // where it strikes
  FaultKind kind = FaultKind::kill;        // what it does
  // The generation that the process is part of; in rendezvous, the one that it was part of. Empty: the first that
  // reaches the phase.
  std::optional<int> generation{};

  // What the kind takes. A member that the kind does not take keeps the value written here.
  std::chrono::milliseconds duration{};
  double factor = 1;                                   // by which `slow` lengthens computing
  std::optional<std::int64_t> count{};                 // empty: without end
  std::uint64_t seed = 0;                              // of what the kind draws
  CorruptionTarget target = CorruptionTarget::weight;  // what `nan` and `flip` change

  std::string specification{};  // as the user wrote it

  friend bool operator==(const Fault&, const Fault&) = default;
};

// All values, in the order of the enumerations.
std::span<const FaultKind> fault_kinds();
// All phases, in the order of the enumeration.
std::span<const FaultPhase> fault_phases();
// All targets, in the order of the enumeration.
std::span<const CorruptionTarget> corruption_targets();

// The spelling in a specification.
std::string_view to_string(FaultKind kind);
std::string_view to_string(FaultPhase phase);
std::string_view to_string(CorruptionTarget target);
// The specification with all defaults written out. parse_fault() turns it into the same fault again.
std::string to_string(const Fault& fault);

// True when the kind takes target=.
bool takes_target(FaultKind kind);
// Whether a specification may name a step in this phase.
bool may_have_step(FaultPhase phase);
// Whether it must.
bool must_have_step(FaultPhase phase);
// True for phases that only rank 0 reaches.
bool is_of_rank_zero(FaultPhase phase);
// True for phases whose step is that of a savepoint.
bool is_of_savepoint(FaultPhase phase);

// Why this fault can never strike, as the rest of a sentence that begins with the fault. Empty for a valid fault.
std::string objection_to(const Fault& fault);

// `ranks` counts replicas and spares. Throws Error{invalid_argument} that says what is allowed, also for a fault that
// can never strike.
Fault parse_fault(std::string_view specification, int ranks);

// Reads a plan. It has one specification a line, where blank lines and text after a # are ignored; or it is a JSON list
// of specifications, each a string or an object with its keys. Throws Error{invalid_argument} that names the line or
// entry.
std::vector<Fault> parse_fault_plan(std::string_view text, int ranks);

// What is known about the runs that a random plan is for. With `one` and `one_for_each_fault` every fault that is drawn
// can strike a run with these replicas, steps and savepoints: `damage` comes after a savepoint is durable, and phases
// of savepoints come where one is written. With `one`, where all faults strike the same run, no fault prevents another:
// at most one fault strikes savepoints, at most two strike a step, and after the loss of a replica only ranks that
// certainly exist are struck.
enum class RunsToStrike { unknown, one, one_for_each_fault };

// What a plan that is drawn may hold. Equal plans draw equal faults.
struct RandomFaultPlan {
  int faults = 1;                    // how many are drawn
  std::uint64_t seed = 0;            // of all draws
  int replicas = 1;                  // of the run, without spares
  std::int64_t steps = 1;            // of the run; faults strike in steps 0 to steps - 1
  std::vector<FaultKind> kinds{};    // empty: all but kill_watchdog, after which the run has to be started again
  std::vector<FaultPhase> phases{};  // empty: all
  // The steps at which savepoints are written, for phases that belong to a savepoint; empty: any of the steps.
  std::vector<std::int64_t> savepoint_steps{};
  RunsToStrike runs = RunsToStrike::unknown;  // see RunsToStrike
};

// Draws a plan. The result depends on the argument alone, on every host. Kinds are equally likely, then the phases that
// each kind allows. Ordered by step; the specification of each fault is its to_string(). Throws Error{invalid_argument}
// when a number is out of range, when no kind is allowed in any of the phases, or when one run has no room for so many
// faults.
std::vector<Fault> random_fault_plan(const RandomFaultPlan& plan);

}  // namespace holdfast::recovery
