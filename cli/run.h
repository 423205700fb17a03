#pragma once

// `holdfast run -- PROGRAM ARGUMENTS`: runs processes of any program under a watchdog.

#include <string>
#include <vector>

#include "console.h"
#include "holdfast/recovery/watchdog.h"

namespace holdfast::cli {

struct Subcommands;

struct RunOptions {
  recovery::WatchdogOptions watchdog{.replicas = 0, .run_directory = "run"};  // the command is PROGRAM ARGUMENTS
  std::vector<std::string> devices{};
  bool starts_anew = false;
  std::string start_token{};            // for a fresh start
  double hang_after_seconds = 0;        // 0: depends on what a process does, and on the step times of the run
  double callback_timeout_seconds = 0;  // 0: hang_after_seconds if that is given, else 10 minutes
  double place_rest_seconds = 600;
  double start_timeout_seconds = 120;
  double stop_grace_seconds = 25;
};

// Blocks until the run is over, and returns its exit code. If the run has not finished, a sentence on
// `console.problems` says why. Throws Error when the run cannot begin.
int run(const RunOptions& options, Console& console);

// Adds the subcommand with its options.
void add_run(Subcommands& commands);

}  // namespace holdfast::cli
