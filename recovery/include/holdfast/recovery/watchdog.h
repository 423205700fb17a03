#pragma once

// The parent of all replicas of a run. It starts one process per replica, notices at once when one dies, fails or
// hangs, lets the others go on from where they are, and brings in a spare or a new process, as often as the restart
// budget allows. It trains nothing itself.
//
// RUN_DIRECTORY/journal.jsonl tells everything that it saw and decided, one JSON object a line.

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
  int rank = 0;  // that it is started for; its generations may give it others. That of a spare is not below `replicas`
  int replicas = 0;
  int place = 0;         // index of its device
  bool is_first = true;  // no other process of the run is there
};

// What each process is to do first, for sentences about one that did not.
struct Registration {
  std::string call = "registering as a worker";
  std::string advice =
      "see holdfast/recovery/worker.h, or worker_c.h; --plain runs programs that know nothing of Holdfast";
};

struct WatchdogOptions {
  int replicas = 1;      // 1 to max_replicas
  int max_replicas = 0;  // that the run may be scaled to; 0: kMaxReplicas
  // That replicas are dealt to, by their names, one place for each; empty: a place without a name for each replica.
  std::vector<std::string> devices{};
  RecoveryOptions recovery{};
  std::string run_directory{};  // created when missing
  AskedStart start{};           // what becomes of the run that it holds
  // The program never registers as a worker, so that nothing is known of it but how its processes end: exit code 0 says
  // that one has finished, any other end is a failure, after which all are killed and start again; none hangs. It is
  // asked to stop by SIGTERM. There are no spares.
  bool is_plain_program = false;
  std::vector<std::string> command{};         // arguments of the program that each replica executes, its name first
  std::string executable = "/proc/self/exe";  // the running program, even when its file was replaced meanwhile
  std::string worker_config{};                // handed to each worker as it is
  Registration registration{};
  LimitNames limit_names{};  // what the three limits above are called
  // Called before each start: "NAME=VALUE" that the process is to have in its environment, beside the watchdog's own.
  std::function<std::vector<std::string>(const NewProcess&)> variables_of{};
  // Called when the run ended without having finished, all replicas are gone, and a whole memory snapshot is there.
  std::function<void(std::int64_t step, std::span<const std::byte> snapshot)> when_unfinished{};
};

inline constexpr int kMaxReplicas = 64;

inline constexpr int kExitFinished = 0;
inline constexpr int kExitUnrecoverable = 1;  // a replica said that restarting cannot help
inline constexpr int kExitGaveUp = 70;        // the restart budget is spent, or one step fails again and again
inline constexpr int kExitStopped = 75;       // SIGINT, SIGTERM, SIGUSR1 or SIGHUP; starting again resumes

struct RunOutcome {
  int exit_code = 0;
  std::string sentence{};  // for the user
  // It ended because the run in the directory was started with other choices than the program has.
  bool has_other_choices = false;
  // A signal asked the program to stop, be it that all replicas had finished by then.
  bool is_stop_requested = false;
};

// Throws Error{invalid_argument} for options that can never work.
void check_options(const WatchdogOptions& options);

// Blocks until the run has ended; no replica is left then, nor what it had started (docs/recovery.md), but for one that
// the kernel cannot kill within its time, which the sentence names. Owns SIGINT, SIGTERM and SIGUSR1 meanwhile, and
// SIGHUP unless the program was started with it ignored; a second signal, 1 s or more after the first, kills the
// replicas at once. Call it from a thread that lives until it returns: replicas die with that thread. From then on
// SIGPIPE and SIGXFSZ no longer end this process, nor a replica that registers: a write that fails must not end a run.
//
// Throws Error{invalid_argument} for options, Error{already_running} when another watchdog or its replicas still own
// the directory, Error{refused, disk_full, ...} when the directory cannot be written. No replica is left then either.
RunOutcome run_watchdog(const WatchdogOptions& options);

// The same for a directory that the caller owns. `options_of` is called when no replica runs yet; what it throws ends
// the run before it begins. Where it throws OtherChoices, or a replica reports them, and the run that the directory
// holds may give way (OwnedRun::may_give_way), that run is put aside with one line in the log, and the new one starts.
RunOutcome run_watchdog(OwnedRun run, const std::function<WatchdogOptions()>& options_of);

}  // namespace holdfast::recovery
