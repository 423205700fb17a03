#pragma once

// What is to go wrong in a run, and where: faults as users write them, as plan files list them, and as a seed draws
// them. Pure: nothing here strikes (see faults.h).
//
// A specification is KEY=VALUE,...
//
//   rank=1,step=120,fault=kill                          phase=forward is understood
//   rank=0,step=300,fault=full-disk,phase=writing,count=3
//   rank=2,phase=rendezvous,generation=1,fault=stop     during the recovery from something else
//
// rank= and fault= are needed; step= is, too, in phases that belong to a step. Hot spares have the ranks behind those
// of the replicas until they become one. What each kind does, and which of duration_ms, factor, count, seed and target
// it takes, stands at FaultKind.

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/base/fault_point.h"

namespace holdfast::recovery {

using FaultPhase = FaultPoint;

enum class FaultKind {
  kill,             // SIGKILL to itself
  stop,             // SIGSTOP to itself, and nobody sends SIGCONT
  pause,            // SIGSTOP to itself, and SIGCONT after duration_ms (500)
  segfault,         // writes to memory that nobody may write
  exit0,            // leaves with exit code 0, without a report
  exit1,            // the same with 1
  exit,             // the same with 3
  throw_exception,  // "throw": std::runtime_error
  terminate,        // std::terminate()
  loop,             // computes for ever without progress
  hang,             // sleeps for ever without progress; "sleep" too
  slow,             // computing takes `factor` (2) times as long, for `count` steps (for ever)
  oom,              // takes memory until std::bad_alloc is thrown
  close_channel,    // "close-channel": shuts the channel to the watchdog down
  garbage,          // sends bytes drawn from `seed` (0) to the watchdog
  nan,              // puts a NaN into `target` (loss), at a place drawn from `seed`
  flip,             // changes one bit of `target` (weight), drawn from `seed`
  lose_beats,       // "lose-beats": gives no sign of life any more, though it works
  delay_beats,      // "delay-beats": the same for duration_ms (2000)
  full_disk,        // "full-disk": `count` (all) operations on savepoints that need space fail with ENOSPC from here on
  io_error,         // "io-error": `count` (all) operations on savepoints fail with EIO from here on
  damage,           // flips bytes, drawn from `seed`, of the newest savepoint of the run directory, then SIGKILL
  kill_watchdog,    // "kill-watchdog": SIGKILL to the watchdog
};

using CorruptionTarget = FaultTarget;

struct Fault {
  int rank = 0;
  std::optional<std::int64_t> step{};  // empty: whichever step gets to the phase first
  FaultPhase phase = FaultPhase::forward;
  FaultKind kind = FaultKind::kill;
  // Which the process is part of; in rendezvous, which it was part of. Empty: whichever gets there first.
  std::optional<int> generation{};

  // What the kind takes; as written here where it does not.
  std::chrono::milliseconds duration{};
  double factor = 1;
  std::optional<std::int64_t> count{};  // empty: no end
  std::uint64_t seed = 0;
  CorruptionTarget target = CorruptionTarget::weight;

  std::string specification{};  // as the user wrote it

  friend bool operator==(const Fault&, const Fault&) = default;
};

// All there are, as written above.
std::span<const FaultKind> fault_kinds();
std::span<const FaultPhase> fault_phases();
std::span<const CorruptionTarget> corruption_targets();

// As in a specification.
std::string_view to_string(FaultKind kind);
std::string_view to_string(FaultPhase phase);
std::string_view to_string(CorruptionTarget target);
// The specification with everything that was understood written out; parse_fault() makes the same fault of it.
std::string to_string(const Fault& fault);

// True where the kind asks for a target: CorruptionTarget means something.
bool takes_target(FaultKind kind);
// True for phases in which a step may be named, and for those in which it must be.
bool may_have_step(FaultPhase phase);
bool must_have_step(FaultPhase phase);
// True for phases that rank 0 alone gets to.
bool is_of_rank_zero(FaultPhase phase);
// True for phases whose step is a savepoint's.
bool is_of_savepoint(FaultPhase phase);

// Why this fault makes no sense, as the rest of a sentence that begins with the fault; empty when it does.
std::string objection_to(const Fault& fault);

// `ranks` counts replicas and spares. Throws Error{invalid_argument} that says what is allowed, also for what makes no
// sense.
Fault parse_fault(std::string_view specification, int ranks);

// The faults of a plan: one specification a line, blank lines and what follows a # left out, or a JSON list of
// specifications, each a string or an object of its keys. Throws Error{invalid_argument} that names the line or entry.
std::vector<Fault> parse_fault_plan(std::string_view text, int ranks);

// What is known of the runs that a plan is for. Every fault that is drawn can strike a run with these replicas, steps
// and savepoints: `damage` comes after a savepoint is durable, and phases of savepoints come where one is written.
// Where all strike one run, none keeps another from striking: one fault at most strikes savepoints, and two a step.
// After the loss of a replica, only ranks that are surely there are struck.
enum class RunsToStrike { unknown, one, one_for_each_fault };

struct RandomFaultPlan {
  int faults = 1;
  std::uint64_t seed = 0;
  int replicas = 1;
  std::int64_t steps = 1;            // of the run: faults strike in steps 0 to steps - 1
  std::vector<FaultKind> kinds{};    // empty: all but kill_watchdog, after which the run has to be started again
  std::vector<FaultPhase> phases{};  // empty: all
  // Numbers of updates at which savepoints are written, for phases that belong to one; empty: any of the steps.
  std::vector<std::int64_t> savepoint_steps{};
  RunsToStrike runs = RunsToStrike::unknown;
};

// A function of its argument alone, the same on every host: kinds are equally likely, then the phases that each has.
// Ordered by step; each fault's specification is its to_string(). Throws Error{invalid_argument} where a number is out
// of range, no kind makes sense in any phase, or one run has no place for so many faults.
std::vector<Fault> random_fault_plan(const RandomFaultPlan& plan);

}  // namespace holdfast::recovery
