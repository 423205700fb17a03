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

#include <functional>
#include <string>

#include "holdfast/recovery/exit_codes.h"
#include "holdfast/recovery/run_start.h"
#include "holdfast/recovery/watchdog_options.h"

namespace holdfast::recovery {

// How a run ended.
struct RunOutcome {
  int exit_code = 0;       // one of exit_codes.h, for the program to exit with
  std::string sentence{};  // for the user
  // The run in the directory was started with other choices than the program has, and this one ended for that reason.
  bool has_other_choices = false;
  // A signal asked the program to stop, perhaps when all replicas had finished.
  bool is_stop_requested = false;
};

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
