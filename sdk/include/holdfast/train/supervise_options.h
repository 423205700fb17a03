#pragma once

// What a run consists of: its replicas and their devices, where it keeps its files, and how it answers failures.
// supervise() takes the options (supervise.h).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/base/recovery_options.h"
#include "holdfast/base/start.h"
#include "holdfast/compute/precision.h"
#include "holdfast/train/reduction.h"

namespace holdfast {

// What replicas compute on.
enum class DeviceKind {
  cpu,   // cores of the host
  cuda,  // GPUs of NVIDIA, with the CUDA back end
};

// A run has these options until it ends.
//
//   const SuperviseOptions options{
//       .replicas = 4, .recovery = {.spares = 1, .max_restarts = 3}, .run_directory = "run"};
struct SuperviseOptions {
  // There is one replica for each device of `devices`, such as "cuda:0", "cuda:1". A device may be listed several
  // times. When the list is empty there are `replicas` of them. When that is 0 too, there is one for every device of
  // `kind`; each core that this process may run on counts as one CPU device. On several hosts
  // these are the replicas of each host.
  DeviceKind kind = DeviceKind::cpu;
  std::vector<std::string> devices{};  // "cpu:0", "cuda:0", ...
  int replicas = 0;                    // without `devices`

  // How exactly matrices are multiplied. CPUs have no tf32, and bf16 only with instructions for it: see Precision.
  Precision precision = Precision::f32;

  // What the watchdog does about failures, and how often; faults to inject; what the run logs
  // (holdfast/base/recovery_options.h).
  RecoveryOptions recovery{};

  // Steps between copies of the state into memory of the watchdog. When all replicas die at once, at most as many steps
  // are computed again. 0: as often as takes half a percent of the time.
  std::int64_t memory_snapshot_every = 0;

  // The folder of the run's savepoints, journal and lock. One run at a time owns it. Starting the program again resumes
  // the run.
  std::string run_directory = "run";

  // Empty: as the environment variable HOLDFAST_START says (resume, fresh or fresh:TOKEN), otherwise resume. Only the
  // first process reads the variable, and owns the run directory then. A replica that starts again never starts anew.
  // Nor does a program that a scheduler starts again, because a fresh start counts once for each token. The token is
  // `start_token`, otherwise the text after the colon, otherwise the id of the Slurm job or the name of the Kubernetes
  // job that the program is part of. Without any of these each start is fresh. A directory that cannot be renamed is
  // refused.
  std::optional<Start> start{};
  std::string start_token{};  // see `start`

  // For debugging: calls the training function in this process, as the only replica, so that a debugger sees it. The
  // process owns the run directory, begins with the newest state there, and computes what the run would. It writes no
  // savepoint, log or record, so the run is afterwards as it was. There is no watchdog. Empty: as the environment
  // variable HOLDFAST_ALONE says (1 or 0), otherwise false.
  std::optional<bool> alone{};

  // What each replica executes, for an application that cannot be executed again as it is: a plug-in, a program with a
  // window. `replica_arguments` begins with the program's name. That program must make as many supervise() calls as
  // this one, with the same options. Empty: this program, with its own arguments.
  std::string replica_executable{};
  std::vector<std::string> replica_arguments{};  // the program's name first

  // Folders for copies of the run directory's savepoints, best on other disks. No other run may use them. A copy that
  // cannot be made is logged and does not end the run. A run resumes from the newest whole savepoint of all these
  // folders, also when the run directory is lost.
  std::vector<std::string> savepoint_copies{};

  // The bits of the run depend on these four. They are recorded at the first start; a later start that asks for others
  // is refused. `shards` defaults to the number of replicas of the first start. There may be more shards than replicas,
  // but not fewer.
  std::uint64_t seed = 0;
  int shards = 0;                                // 0: as many as there are replicas at the first start
  int threads_per_shard = 1;                     // on CPUs
  Reduction reduction = Reduction::shard_order;  // see Reduction

  // A run ends with other bits when it is resumed with another processor, library version or precision, or under
  // Reduction::fastest with another number of replicas. Such a start is refused unless this is set.
  bool accept_other_arithmetic = false;
};

}  // namespace holdfast
