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

#include <functional>

#include "holdfast/train/replica.h"
#include "holdfast/train/supervise_options.h"

namespace holdfast {

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
