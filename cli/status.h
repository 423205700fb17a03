#pragma once

// `holdfast status RUN`: what each process of a live run is doing.

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "console.h"

namespace holdfast::cli {

struct Subcommands;

struct StatusOptions {
  std::string run;
  bool as_json = false;
  bool once = false;
  bool watch = false;  // neither of the two: as the terminal decides
};

// Watching ends with the run. Returns the exit code; throws Error{not_found} where no run is live from the start.
int status(const StatusOptions& options, Console& console);

// One look as people read it; `status` as recovery/run_control.h says.
std::string describe_status(const nlohmann::json& status);

// Adds the subcommand with its options.
void add_status(Subcommands& commands);

}  // namespace holdfast::cli
