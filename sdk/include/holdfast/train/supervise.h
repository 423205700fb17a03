#pragma once

// supervise() runs a training function in several mirrored processes, under a watchdog that replaces those that fail.
//
// The process that calls supervise() first becomes the watchdog. It trains nothing. It executes the same program again,
// with the same arguments, once for each replica. In a replica supervise() calls the training function, and ends the
// process when that returns. So the code of main() before supervise() runs in every process and must do the same in
// each. The code after supervise() runs once, in the first process.
//
// A program may call supervise() several times, one call after the other: folds of a cross-validation, a sweep, two
// stages. Each call has a run directory of its own. Every process makes the same calls in the same order. In the
// replicas of a later call the earlier calls return at once, with what they returned in the first process.
// run_results() reads the results of a run:
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
//
// A program that is started on each of several hosts becomes the agent of its host, and the first host decides for the
// run. Which host it is on comes from the environment: HOLDFAST_NNODES, HOLDFAST_NODE_RANK, HOLDFAST_HEAD and
// HOLDFAST_SECRET_FILE, or what torchrun, Kubeflow, Slurm or Open MPI say (docs/hosts/index.md). The options are the
// same on all hosts. The call returns on each host, and the program may make one call only.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/base/recovery_options.h"
#include "holdfast/base/start.h"
#include "holdfast/compute/precision.h"
#include "holdfast/train/reduction.h"
#include "holdfast/train/replica.h"

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
  std::vector<std::string> devices{};  // "cpu", "cuda:0", ...
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

// Exit codes that supervise() returns in the watchdog besides 0. This one: the run failed or cannot run.
inline constexpr int kExitFailed = 1;
// The run was asked to stop, and resumes when the program is started again (EX_TEMPFAIL of sysexits.h).
inline constexpr int kExitStopped = 75;

// Returns the exit code for main(), once the run is over; it blocks until then. A failure is logged as one sentence.
// `train` must call fit(), evaluate() or predict() of a Trainer in every replica, otherwise the run ends with
// kExitFailed. From the call on SIGPIPE and SIGXFSZ no longer end the process: a run goes on when its output has no
// reader, or when a file gets too large.
//
// A replica does not return from the call that it was started for. Its process ends as by std::exit(), which flushes
// and closes the standard streams of C and C++. Under `holdfast run`, which starts all processes of the program itself,
// the call does return, and the program may make one call only.
//
// After a stop (kExitStopped) later calls return kExitStopped without starting. Refused with kExitFailed: a second call
// with the run directory of an earlier one; calls that differ between a replica and the first process; a second call
// under `holdfast run` or on several hosts; an environment that contradicts itself about hosts. Throws
// Error{invalid_argument} when it is called within a training function, or while a call of another thread runs, and in
// no other case.
int supervise(int argc, char** argv, const SuperviseOptions& options, const std::function<void(Replica&)>& train);

// True in a process that supervise() or `holdfast run` started as a replica, from its first line to its end. False in
// programs that a replica starts. Any thread.
bool is_replica_process();

}  // namespace holdfast
