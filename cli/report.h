#pragma once

// `holdfast report RUN`: what happened in a run, from its journal.

#include <string>

#include "console.h"
#include "holdfast/recovery/run_report.h"

namespace holdfast::cli {

struct Subcommands;

struct ReportOptions {
  std::string run;
  bool as_json = false;
};

// Returns the exit code. Throws Error{not_found} when there is no journal.
int report(const ReportOptions& options, Console& console);

// The report for people. `is_live`: the last start has not ended, and its watchdog answers.
std::string describe_report(const recovery::RunReport& report, bool is_live);

// Adds the subcommand with its options.
void add_report(Subcommands& commands);

}  // namespace holdfast::cli
