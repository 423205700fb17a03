#pragma once

// How a run of replicas recovers, as its user chooses. SuperviseOptions has the same members; the watchdog and its
// supervisor take this struct as a whole. To add an option: a member here, a member of SuperviseOptions and its line in
// recovery_options_of() (sdk/src/train/supervise/supervise_recovery.cpp), and the code that obeys it.

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

// What the watchdog does about failures, and how often.
struct RecoveryOptions {
  int spares = 0;                         // processes that are initialised and wait to take the place of a replica
  WhenLost when_lost = WhenLost::shrink;  // see WhenLost
  RecoverFrom recover_from = RecoverFrom::survivors;  // see RecoverFrom
  WhenSlow when_slow = WhenSlow::report;              // holds for workers that report their work

  int max_restarts = 20;  // within restart_window; one failure more ends the run
  std::chrono::milliseconds restart_window = std::chrono::minutes(10);  // in which max_restarts are counted
  // A device slot where one process after the other failed is left out for so long, twice as long each further time, at
  // most two hours. Then a new process tries it while the others train.
  std::chrono::milliseconds place_rest = std::chrono::minutes(10);
  // Whether a new process waits until the kernel has confirmed the end of those before it on its device slot, at most
  // 30 s: a device with little memory cannot hold both. Empty: it does not wait.
  std::optional<bool> start_when_gone{};

  // How long a worker may go without progress before the watchdog replaces it (holdfast/recovery/hang_limits.h).
  // `hang_after` does not hold while a worker waits for peers or starts, nor in callbacks where `callback_timeout` is
  // given. Empty: limits by phase and by the run's step times; for callbacks `hang_after`, or 10 minutes without it.
  std::optional<std::chrono::milliseconds> hang_after{};
  // The limit of callbacks alone, where it is given.
  std::optional<std::chrono::milliseconds> callback_timeout{};
  // From the start of a process until it has registered with the watchdog.
  std::chrono::milliseconds start_timeout = std::chrono::seconds(120);
  std::chrono::milliseconds stop_grace = std::chrono::seconds(25);  // from a request to stop until a kill

  std::vector<std::string> faults{};  // to inject, for tests (holdfast/recovery/fault_plan.h)
  // The least that the watchdog and its workers write to standard error. Empty: as set_log_level() has it in each.
  std::optional<LogLevel> log_level{};
};

}  // namespace holdfast
