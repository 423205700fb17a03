#pragma once

// Runs a training function in several mirrored processes under a watchdog that brings them back after any failure.
//
// The process that calls supervise() first becomes the watchdog: it trains nothing and executes the same program again,
// with the same arguments, once for each replica. There supervise() calls the training function. So main() runs in
// every process; what it does before supervise() must be the same each time.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/compute/precision.h"
#include "holdfast/train/reduction.h"
#include "holdfast/train/replica.h"

namespace holdfast {

enum class DeviceKind { cpu, cuda };

// What becomes of a run that lost a replica and has no spare ready.
enum class WhenLost {
  wait,    // for a new process
  shrink,  // goes on with fewer at once, with the same bits; a new process joins at a step boundary
};

// Where the state comes from after a failure.
enum class RecoverFrom {
  survivors,  // replicas that live keep it; when none does, from the watchdog's memory, then from the newest savepoint
  savepoint,  // all start again from the newest savepoint
};

// What becomes of a replica that computes at least half as long again as the others, over many steps. The journal tells
// of it in any case.
enum class WhenSlow {
  report,  // that is all
  deal,    // it gets fewer shards, with the same bits, where a step gets a tenth shorter by that; more when it is quick
           // again. Needs more shards than replicas
  replace,  // a spare that is ready takes its place, once in `restart_window` for each device; not with
            // RecoverFrom::savepoint
};

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
  // that is written while training goes on is watched too: a write or an fsync may take as long, and the time that its
  // bytes take at 4 MiB a second.
  std::optional<std::chrono::milliseconds> hang_after{};
  // The same for code of the application that training calls: callbacks, and SaveOptions::when_durable. What blocks for
  // so long, as an upload may, is no hang; the other replicas wait. Empty: hang_after where that is given, else 10
  // minutes.
  std::optional<std::chrono::milliseconds> callback_timeout{};
  std::chrono::milliseconds start_timeout = std::chrono::seconds(120);
  // From SIGINT, SIGTERM, SIGUSR1 or SIGHUP (unless that is ignored, as by nohup) until replicas that have not left by
  // themselves are killed. A second signal, 1 s or more after the first, kills them at once.
  std::chrono::milliseconds stop_grace = std::chrono::seconds(25);

  // Faults to inject, for tests: "rank=1,step=120,fault=kill[,phase=compute]"; each fires once in a run. See
  // holdfast/recovery/fault_plan.h. The environment variable HOLDFAST_FAULTS, specifications separated by semicolons,
  // adds to them, so that programs without an option for faults can be tested; nothing else is taken from the
  // environment.
  std::vector<std::string> faults{};
};

// Exit codes that supervise() returns in the watchdog beside 0: the run failed or cannot run; it was asked to stop and
// will resume when the program is started again (as sysexits.h has EX_TEMPFAIL).
inline constexpr int kExitFailed = 1;
inline constexpr int kExitStopped = 75;

// What main() returns. Never throws: a failure is logged as one sentence. Blocks until the run is over. `train` has to
// call fit(), evaluate() or predict() of a Trainer in every replica, else the run ends with kExitFailed. SIGPIPE and
// SIGXFSZ end the process no longer from then on: nobody may read the output of a run, or its files may get too large.
int supervise(int argc, char** argv, const SuperviseOptions& options, const std::function<void(Replica&)>& train);

// True in a process that supervise() started as a replica: for output that should appear once.
bool is_replica_process();

}  // namespace holdfast
