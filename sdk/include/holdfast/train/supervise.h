#pragma once

// Runs a training function in several mirrored processes under a watchdog that brings them back after any failure.
//
// The process that calls supervise() first becomes the watchdog: it trains nothing and executes the same program again,
// with the same arguments, once for each replica. There supervise() calls the training function, and ends the process
// when that returns. So what main() does before supervise() runs in every process, and must be the same each time; what
// it does after supervise() runs once, in the first process.
//
// A program may call it several times, one after the other: folds of a cross-validation, a sweep, two stages. Each call
// has a run directory of its own, and the calls are the same, in the same order, in every process. In the replicas of a
// later call the earlier ones return at once what they returned in the first process. run_results() reads what came of
// a run:
//
//   double sum = 0;
//   for (int fold = 0; fold < 3; ++fold) {
//     const std::string directory = "run/fold" + std::to_string(fold);
//     const int code = supervise(argc, argv, {.replicas = 2, .run_directory = directory},
//                                [&](Replica& replica) { train(replica, fold); });
//     if (code != 0) return code;
//     sum += run_results(directory).calls.back().results.at("loss");
//   }
//   std::printf("mean loss %g\n", sum / 3);  // once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/base/log.h"
#include "holdfast/base/recovery_options.h"
#include "holdfast/base/start.h"
#include "holdfast/compute/precision.h"
#include "holdfast/train/reduction.h"
#include "holdfast/train/replica.h"

namespace holdfast {

enum class DeviceKind { cpu, cuda };

struct SuperviseOptions {
  // Replicas are made one for each device. `devices` lists them ("cpu:0", "cpu:1", the same one several times where
  // that is wanted); when it is empty there are `replicas` of them, and when that is 0 too, one for every device of
  // `kind`: each core that this process may run on counts as one CPU device.
  DeviceKind kind = DeviceKind::cpu;
  std::vector<std::string> devices{};
  int replicas = 0;

  // Of the products of matrices on GPUs. Others than f32 are refused with Error{invalid_argument} on CPUs.
  Precision precision = Precision::f32;

  // Further processes that load data, build the model and then wait to take the place of a replica at once.
  int spares = 0;
  WhenLost when_lost = WhenLost::shrink;
  RecoverFrom recover_from = RecoverFrom::survivors;
  WhenSlow when_slow = WhenSlow::report;

  // The state is copied into memory of the watchdog each so many steps: when all replicas die at once, at most as many
  // are computed again. 0: as often as costs no more than half a percent of the time.
  std::int64_t memory_snapshot_every = 0;

  // Savepoints, journal and lock of the run. One run at a time owns it; starting the program again resumes.
  std::string run_directory = "run";

  // Empty: as the environment variable HOLDFAST_START says (resume, fresh or fresh:TOKEN), else resume. The first
  // process reads it once, and owns the run directory then; replicas that start again never start anew. Nor does a
  // program that a scheduler starts again: a fresh start counts once for each token. The token is `start_token`, else
  // the text after the colon, else the id of the Slurm job or the name of the Kubernetes job that the program is part
  // of. Without any of these each start is fresh. A directory that cannot be renamed is refused.
  std::optional<Start> start{};
  std::string start_token{};

  // Debugging: calls the training function in this process, as the only replica, so that a debugger sees it. It owns
  // the run directory, begins with the newest state there, computes what the run would, and writes nothing of its own:
  // no savepoint, log or record, so that the run is as it was afterwards. Nobody watches. Empty: as the environment
  // variable HOLDFAST_ALONE says, 1 or 0, else false.
  std::optional<bool> alone{};

  // What each replica executes, for an application that cannot be executed again as it is: a plug-in, a program with a
  // window. `replica_arguments` has the program's name first. That program must call supervise() with the same options
  // as often as this one. Empty: this very program, with its arguments.
  std::string replica_executable{};
  std::vector<std::string> replica_arguments{};

  // Folders, best on other disks, for copies of the run directory's savepoints; of this run alone. A copy that cannot
  // be made is logged and does not end the run. A run resumes from the newest whole savepoint of all of them, also when
  // the run directory is lost.
  std::vector<std::string> savepoint_copies{};

  // What the bits of the run depend on. They are recorded at the first start; a later start that asks for others is
  // refused. Shards default to the number of replicas of the first start, and may be more than there are replicas, but
  // not fewer.
  std::uint64_t seed = 0;
  int shards = 0;
  int threads_per_shard = 1;
  Reduction reduction = Reduction::shard_order;

  // A run that is resumed with another processor, library version or precision, or under Reduction::fastest with
  // another number of replicas, ends with other bits, and is refused unless this is set.
  bool accept_other_arithmetic = false;

  int max_restarts = 20;  // within restart_window; then the run ends with the last cause
  std::chrono::milliseconds restart_window = std::chrono::minutes(10);
  // A device where one process after the other failed is left out where there is another. After so long, twice as long
  // each further time and at most two hours, a new process tries it while the others train; `holdfast scale` has it
  // tried at once.
  std::chrono::milliseconds place_rest = std::chrono::minutes(10);
  // Whether the successor of a failed process waits for the kernel to confirm its end, for at most 30 s: a device with
  // little memory cannot hold both. Empty: on devices that are not CPUs.
  std::optional<bool> start_when_gone{};
  // A replica that makes no progress for this long is taken for hung and replaced: longer than the longest step or
  // sample. Empty: a step may take a second and three times the 99th percentile of those before; reading data,
  // savepoints and evaluation 30 s; a process that uses its processor ten times as long, and at least 30 s. A savepoint
  // that is written while training goes on is watched too: a write or an fsync may take this long, plus the time that
  // its bytes take at 4 MiB a second.
  std::optional<std::chrono::milliseconds> hang_after{};
  // The same for code of the application that training calls: callbacks, and SaveOptions::when_durable. Code that
  // blocks for less than this, as an upload may, is not taken for hung; the other replicas wait. Empty: hang_after
  // where that is given, else 10 minutes.
  std::optional<std::chrono::milliseconds> callback_timeout{};
  std::chrono::milliseconds start_timeout = std::chrono::seconds(120);
  // From SIGINT, SIGTERM, SIGUSR1 or SIGHUP (unless that is ignored, as by nohup) until replicas that have not left by
  // themselves are killed. A second signal, 1 s or more after the first, kills them at once.
  std::chrono::milliseconds stop_grace = std::chrono::seconds(25);

  // The least that is written to standard error, in all processes of the run: from LogLevel::warning on a line for each
  // failure, at LogLevel::debug all that the watchdog decides. Empty: as set_log_level() has it, which is
  // LogLevel::info where nobody calls it.
  std::optional<LogLevel> log_level{};

  // Faults to inject, for tests: "rank=1,step=120,fault=kill[,phase=compute]"; each fires once in a run. See
  // holdfast/recovery/fault_plan.h. The environment variable HOLDFAST_FAULTS, specifications separated by semicolons,
  // adds to them, so that programs without an option for faults can be tested.
  std::vector<std::string> faults{};
};

// Exit codes that supervise() returns in the watchdog beside 0: the run failed or cannot run; it was asked to stop and
// will resume when the program is started again (as sysexits.h has EX_TEMPFAIL).
inline constexpr int kExitFailed = 1;
inline constexpr int kExitStopped = 75;

// What main() returns. Blocks until the run is over. A failure is logged as one sentence. `train` has to call fit(),
// evaluate() or predict() of a Trainer in every replica, else the run ends with kExitFailed. From the call on SIGPIPE
// and SIGXFSZ no longer end the process: a run goes on when its output has no reader, or when a file gets too large.
//
// In a replica it does not return from the call that the replica was started for: the process ends as by std::exit(),
// which flushes and closes C and C++ standard streams. Under `holdfast run`, which starts all processes of the program
// itself, it does return there, and the program may have one call only.
//
// After a stop (kExitStopped) later calls return kExitStopped without starting. Refused with kExitFailed: a second call
// with the run directory of an earlier one; calls that differ between a replica and the first process; a second call
// under `holdfast run`. Throws Error{invalid_argument} within a training function, and while another thread's call
// runs, and nowhere else.
int supervise(int argc, char** argv, const SuperviseOptions& options, const std::function<void(Replica&)>& train);

// True in a process that supervise() or `holdfast run` started as a replica, from its first line to its end; false in
// programs that a replica starts.
bool is_replica_process();

}  // namespace holdfast
