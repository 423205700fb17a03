#pragma once

// `holdfast report RUN`: the story of a run.

#include <string>

#include "console.h"
#include "holdfast/recovery/run_report.h"

namespace holdfast::cli {

struct Subcommands;

struct ReportOptions {
  std::string run;
  bool as_json = false;
};

// Returns the exit code; throws Error{not_found} where there is no journal.
int report(const ReportOptions& options, Console& console);

// As people read it. `is_live`: the last start has not ended, and its watchdog answers.
std::string describe_report(const recovery::RunReport& report, bool is_live);

// Adds the subcommand with its options.
void add_report(Subcommands& commands);

}  // namespace holdfast::cli
