#pragma once

// `holdfast status RUN`: what each process of a live run does.

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "console.h"

namespace holdfast::cli {

struct Subcommands;

struct StatusOptions {
  std::string run;
  bool as_json = false;
  bool once = false;
  bool watch = false;  // neither: watch on a terminal, else print once
};

// Prints the status once, or every second until the run ends. Returns the exit code. Throws Error{not_found} when no
// run is live at the first time.
int status(const StatusOptions& options, Console& console);

// The status for people. `status` is an answer as recovery/run_control.h describes it.
std::string describe_status(const nlohmann::json& status);

// Adds the subcommand with its options.
void add_status(Subcommands& commands);

}  // namespace holdfast::cli
