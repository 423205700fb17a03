#pragma once

// Runs a training program once, under faults, and returns what is known about the run afterwards. For tests of programs
// that call holdfast::supervise(), or that run under `holdfast run`.
//
// The program gets a session of its own, a fresh run directory, and its faults through HOLDFAST_FAULTS. It is bounded
// in time, and no process of it stays. Everything in the result comes from the program's end, its output, and its run
// directory; the program itself is not changed.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::resilience {

// A training program and how to start it:
//
//   Program program{.command = {"./train", "--run-dir", "{run_dir}", "--replicas", "{replicas}"}, .replicas = 4};
struct Program {
  // The program, which is looked up in PATH, and its arguments. In each of them, {run_dir} is replaced by the run
  // directory, and {replicas} by `replicas`. One argument must contain {run_dir}.
  std::vector<std::string> command{};
  int replicas = 2;  // replaces {replicas}
  // More than 1: the program is started so many times at once, as on several hosts: addresses of this machine, which
  // share the run directory. HOLDFAST_NNODES and others tell the program, so it calls supervise() or is `holdfast run`.
  // `replicas` are those of each host then, and what is on a host lives in a session of its own.
  int hosts = 1;
};

// How the program is run.
struct RunOptions {
  // Specifications of faults, such as "rank=1,step=120,fault=kill"; see holdfast/recovery/fault_plan.h.
  std::vector<std::string> faults{};
  // For all starts of the program together. Afterwards every process of it is killed.
  std::chrono::milliseconds time_limit = std::chrono::minutes(2);
  // How long the program's other processes may live on after the program has ended.
  std::chrono::milliseconds leave_time = std::chrono::seconds(5);
  // Empty: a temporary folder, which is deleted afterwards. Otherwise a folder that does not exist yet. It is kept.
  std::string run_directory{};
};

// The end of a fit(): two runs with equal values have the same weights, bit by bit.
struct FinishedFit {
  std::int64_t step = 0;         // of the last update
  std::string weights_digest{};  // in hexadecimal digits

  friend bool operator==(const FinishedFit&, const FinishedFit&) = default;
};

// A replica that failed, from the journal.
struct LostReplica {
  int generation = 0;     // that it was part of
  int rank = 0;           // in that generation
  std::int64_t step = 0;  // that it was in; -1: before its first step
  std::string cause{};    // a sentence
};

// A fault that changed numbers of a replica (`nan` or `flip`), from the journal.
struct InjectedCorruption {
  int generation = 0;     // in which the fault struck
  int rank = 0;           // of the replica
  std::int64_t step = 0;  // that it was in
  int replicas = 0;       // in this generation when it opened; 0: the journal does not say
};

// What is known about a run after its end. Steps are counted from 0.
struct RunResult {
  // 128 + the signal's number when a signal ended the program. On several hosts, that of the first one; where it is 0,
  // that of the first host that has another one and was not started again.
  int exit_code = -1;
  // A program whose watchdog was killed by a fault is started again, so there may be several starts. On several hosts
  // it is the sum of those beyond the first of each, and 1.
  int starts = 1;
  // The time limit passed, and all processes were killed. On several hosts also: the first one had finished, and
  // another one had not ended after `leave_time`.
  bool is_out_of_time = false;
  // Why the run ended: the last sentence of the journal, or else the last line of the output.
  std::string sentence{};
  // Standard output and standard error together, at most their last 64 KiB; on several hosts, of each start.
  std::string output{};
  int replicas = 0;  // with which the watchdog began; 0: it did not begin
  // Empty: no fit() finished.
  std::optional<FinishedFit> last_fit{};
  // The steps at which savepoints of the run became durable, in rising order, from the journal.
  std::vector<std::int64_t> savepoint_steps{};
  std::vector<LostReplica> lost{};                // in the order of the journal
  std::vector<InjectedCorruption> corruptions{};  // in the order of the journal
  // How often the run went back to an earlier state, because of wrong numbers.
  int roll_backs = 0;
  int faults_struck = 0;  // how many of the injected faults the journal mentions
  // Indices into RunOptions::faults of those that struck, in rising order.
  std::vector<int> struck{};
  // Processes that were still alive leave_time after the program's end. They have been killed.
  std::vector<int> processes_left{};
  std::chrono::milliseconds wall_time{};  // of all starts together
};

// Blocks until the program has ended and no process of it is left, which takes at most the time limit and the time that
// killing takes. The calling thread must stay alive during the call: the program is killed when that thread ends.
//
// Throws Error{invalid_argument} when no argument contains {run_dir}, when the run directory exists, or when a fault
// cannot be read; Error naming the program when it cannot be started; Error{deadline_exceeded} when its processes
// cannot be killed.
RunResult run_program(const Program& program, const RunOptions& options);

}  // namespace holdfast::resilience
