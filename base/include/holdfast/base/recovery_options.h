#pragma once

// How a run of replicas recovers, as its user chooses. SuperviseOptions::recovery, WatchdogOptions::recovery and the
// supervisor are this one struct; `holdfast run` has a flag for most members.
//
//   supervise(argc, argv, {.replicas = 4, .recovery = {.spares = 1, .max_restarts = 3}}, train);
//
// An option is declared here, checked in recovery/src/decide/policy.cpp, obeyed in one place, and nowhere
// copied (tests/unit/house/options_test.cpp counts).

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/base/log.h"

namespace holdfast {

// What happens to a run that lost a replica while no spare is ready.
enum class WhenLost {
  wait,    // the run waits for a new process
  shrink,  // the run goes on at once with fewer replicas and the same bits; a new process joins at a step boundary
};

// Where the state comes from after a failure.
enum class RecoverFrom {
  survivors,  // replicas that live keep it; when none does, from the watchdog's memory, then from the newest savepoint
  savepoint,  // all replicas start again from the newest savepoint
};

// What happens to a replica that takes at least 1.5 times as long as the others over many steps. The journal records it
// in any case.
enum class WhenSlow {
  report,   // nothing else
  deal,     // it gets fewer shards, with the same bits, where that shortens a step by a tenth; more when it is quick
            // again. Needs more shards than replicas
  replace,  // a spare that is ready takes its place, once in `restart_window` for each device; not with
            // RecoverFrom::savepoint
};

// What the watchdog does about failures, and how often. A count or a time out of its range is refused before any
// process starts, with a sentence that names the member.
struct RecoveryOptions {
  // Further processes. They load data, build the model and then wait to take the place of a replica at once.
  int spares = 0;
  WhenLost when_lost = WhenLost::shrink;              // see WhenLost
  RecoverFrom recover_from = RecoverFrom::survivors;  // see RecoverFrom
  WhenSlow when_slow = WhenSlow::report;              // see WhenSlow; holds for workers that report their work

  // Within restart_window. One failure more ends the run with its cause.
  int max_restarts = 20;
  // In which max_restarts are counted.
  std::chrono::milliseconds restart_window = std::chrono::minutes(10);
  // A device slot where one process after the other failed is left out, where there is another one. After this time a
  // new process tries it while the others train. The time doubles with each further failure, up to two hours.
  // `holdfast scale` has the device tried at once.
  std::chrono::milliseconds place_rest = std::chrono::minutes(10);
  // Whether the successor of a failed process waits until the kernel has confirmed the end of that process, for at most
  // 30 s. A device with little memory cannot hold both. Empty: true on devices that are not CPUs, those whose name in
  // the run's list does not begin with "cpu". supervise(), `holdfast run` and run_watchdog() fill this in alike.
  std::optional<bool> start_when_gone{};

  // A process without progress for this long counts as hung and is replaced. It must be longer than the longest step or
  // sample. It does not hold while the process waits for peers or starts, nor in callbacks where `callback_timeout` is
  // given. It also limits each write or fsync of a savepoint while training goes on, plus the time that the bytes take
  // at 4 MiB a second. Empty: a step may take three times the 99th percentile of those before, and a second; reading
  // data, savepoints and evaluation 30 s. A process that uses its processor may then take ten times as long, and at
  // least 30 s. All limits: holdfast/recovery/hang_limits.h.
  std::optional<std::chrono::milliseconds> hang_after{};
  // The same for code of the application that training calls: callbacks, and SaveOptions::when_durable. Such code may
  // block for less than this, as an upload does; the other replicas wait. Empty: hang_after where that is given,
  // otherwise 10 minutes.
  std::optional<std::chrono::milliseconds> callback_timeout{};
  // How long a process that starts may be without progress, until it has registered with the watchdog.
  std::chrono::milliseconds start_timeout = std::chrono::seconds(120);
  // From SIGINT, SIGTERM, SIGUSR1 or SIGHUP (unless SIGHUP is ignored, as by nohup) until replicas that have not left
  // are killed. A second signal, 1 s or more after the first, kills them at once.
  std::chrono::milliseconds stop_grace = std::chrono::seconds(25);

  // Faults to inject, for tests: "rank=1,step=120,fault=kill[,phase=compute]". Each strikes once in a run. See
  // holdfast/recovery/fault_plan.h. The environment variable HOLDFAST_FAULTS, specifications separated by semicolons,
  // adds to them, so that programs without an option for faults can be tested.
  std::vector<std::string> faults{};
  // The least that all processes of the run write to standard error. LogLevel::warning has a line for each failure,
  // LogLevel::debug everything that the watchdog decides. Empty: as set_log_level() has it in each, by default
  // LogLevel::info.
  std::optional<LogLevel> log_level{};
};

}  // namespace holdfast
