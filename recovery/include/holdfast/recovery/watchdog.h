#pragma once

// The watchdog is the parent of all replicas of a run, and trains nothing itself. It starts one process for each
// replica and notices at once when one dies, fails or hangs. Then it lets the others go on from where they are, and
// brings in a spare or a new process, as often as the restart budget allows.
//
// RUN_DIRECTORY/journal.jsonl records everything that it observed and decided, one JSON object per line.
//
//   const RunOutcome outcome = run_watchdog(
//       {.replicas = 4, .recovery = {.spares = 1}, .run_directory = "run", .command = {"trainer"},
//        .executable = "/usr/bin/trainer"});
//   if (outcome.exit_code != kExitFinished) std::fprintf(stderr, "%s\n", outcome.sentence.c_str());

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "holdfast/base/log.h"
#include "holdfast/base/recovery_options.h"
#include "holdfast/recovery/hang_limits.h"
#include "holdfast/recovery/run_start.h"

namespace holdfast::recovery {

using holdfast::RecoverFrom;
using holdfast::WhenLost;
using holdfast::WhenSlow;

// A process that is about to start.
struct NewProcess {
  int rank = 0;          // that it is started for; generations may give it others. A spare's is at least `replicas`
  int replicas = 0;      // that there are to be
  int device_slot = 0;   // index in WatchdogOptions::devices
  bool is_first = true;  // no other process of the run exists
};

// What each process must do first, for sentences about a process that did not do it.
struct Registration {
  std::string call = "registering as a worker";  // completes "ended with code 0 without ..."
  // What the developer of the program can do about it.
  std::string advice =
      "see holdfast/recovery/worker.h, or worker_c.h; --plain runs programs that know nothing of Holdfast";
};

// What run_watchdog() starts, and how it answers failures.
struct WatchdogOptions {
  int replicas = 1;      // 1 to max_replicas
  int max_replicas = 0;  // the most that the run may be scaled to; 0: kMaxReplicas
  // The names of the device slots that processes are assigned to. Empty: a slot without a name for each replica.
  std::vector<std::string> devices{};
  // In a run over several hosts, as run_program() makes it (run_program.h), `replicas` and `devices` are those of all
  // hosts. Hosts take turns: device slot s is on host s modulo `hosts`.
  int hosts = 1;
  bool has_separate_folders = false;                                  // each host has a run directory of its own
  std::chrono::milliseconds join_timeout = std::chrono::minutes(10);  // for all hosts to be there at the start
  RecoveryOptions recovery{};                                         // holdfast/base/recovery_options.h
  std::string run_directory{};                                        // created when missing
  AskedStart start{};  // what happens to the run that the directory holds
  // The program never registers as a worker, so the watchdog knows only how its processes end. Exit code 0 means that a
  // process has finished. Any other end is a failure, after which all are killed and start again. Hangs are not
  // noticed. SIGTERM asks the program to stop. There are no spares.
  bool is_plain_program = false;
  std::vector<std::string> command{};         // the arguments of the program that each replica executes; its name first
  std::string executable = "/proc/self/exe";  // this program, even when its file was replaced meanwhile
  std::string worker_config{};                // passed to each worker unchanged
  Registration registration{};                // for sentences about processes that did not register
  LimitNames limit_names{};                   // what the user calls the limits of `recovery`
  // Called before each start, on the thread of run_watchdog(). Returns "NAME=VALUE" texts for the environment of the
  // process, besides those that the watchdog sets.
  std::function<std::vector<std::string>(const NewProcess&)> variables_of{};
  // Called when the run ended without having finished, all replicas are gone, and a whole memory snapshot exists. Not
  // with RecoverFrom::savepoint, which wants states from files alone.
  std::function<void(std::int64_t step, std::span<const std::byte> snapshot)> when_unfinished{};
};

inline constexpr int kMaxReplicas = 64;  // the most replicas that a run can have

inline constexpr int kExitFinished = 0;       // all replicas have finished
inline constexpr int kExitUnrecoverable = 1;  // a replica reported that a restart cannot help
inline constexpr int kExitGaveUp = 70;        // the restart budget is spent, or one step fails again and again
inline constexpr int kExitStopped = 75;       // by SIGINT, SIGTERM, SIGUSR1 or SIGHUP; starting again resumes

// How a run ended.
struct RunOutcome {
  int exit_code = 0;       // one of the codes above, for the program to exit with
  std::string sentence{};  // for the user
  // The run in the directory was started with other choices than the program has, and this one ended for that reason.
  bool has_other_choices = false;
  // A signal asked the program to stop, perhaps when all replicas had finished.
  bool is_stop_requested = false;
};

// Throws Error{invalid_argument} for options that can never work.
void check_options(const WatchdogOptions& options);

// Blocks until the run has ended. Then no replica is left, nor any process that one had started (docs/recovery.md). The
// exception is a process that the kernel cannot kill in time, which the sentence names.
//
// Handles SIGINT, SIGTERM and SIGUSR1 meanwhile, and SIGHUP unless the program was started with it ignored. A second
// signal, 1 s or more after the first, kills the replicas at once. The calling thread must live until the call returns,
// because replicas die with it. From the call on SIGPIPE and SIGXFSZ no longer end this process, nor a replica that
// registers: a failed write must not end a run.
//
// Throws Error{invalid_argument} for options, Error{already_running} when another watchdog or its replicas still own
// the directory, Error{refused, disk_full, ...} when the directory cannot be written. No replica is left then either.
RunOutcome run_watchdog(const WatchdogOptions& options);

// The same for a directory that the caller owns. `options_of` is called while no replica runs; an exception from it
// ends the run before it begins. When it throws OtherChoices, or a replica reports them, the run in the directory may
// have to give way (OwnedRun::may_give_way). Then that run is put aside with one line in the log, and the new one
// starts.
RunOutcome run_watchdog(OwnedRun run, const std::function<WatchdogOptions()>& options_of);

}  // namespace holdfast::recovery
