#pragma once

// What a watchdog is to start, and how it answers failures. watchdog.h runs it; which limits and budgets there are says
// holdfast/base/recovery_options.h.
//
//   WatchdogOptions options{.replicas = 2, .devices = {"cuda:0", "cuda:1"}, .run_directory = "run",
//                           .command = {"trainer", "--epochs", "3"}, .executable = "/usr/bin/trainer"};
//   options.recovery.hang_after = std::chrono::minutes(2);
//   check_options(options);  // as run_watchdog() does

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "holdfast/base/recovery_options.h"
#include "holdfast/recovery/asked_start.h"
#include "holdfast/recovery/hang_limits.h"

namespace holdfast::recovery {

using holdfast::RecoverFrom;
using holdfast::WhenLost;
using holdfast::WhenSlow;

// A process that is about to start.
struct NewProcess {
  int rank = 0;          // that it is started for; generations may give it others. A spare's is at least `replicas`
  int local_rank = 0;    // among the processes of its host; no two living ones have the same
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

// The variable with the run directory of a process.
inline constexpr const char* kRunDirectoryVariable = "HOLDFAST_RUN_DIRECTORY";

// Throws Error{invalid_argument} for options that can never work, such as no command, or spares of a plain program.
// Starts nothing, and does not look whether the program exists.
void check_options(const WatchdogOptions& options);

inline constexpr int kMaxReplicas = 64;  // the most replicas that a run can have

}  // namespace holdfast::recovery
