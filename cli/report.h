#pragma once

// `holdfast report RUN`: what happened in a run, from its journal.

#include <string>

#include "holdfast/recovery/run_report.h"

namespace holdfast::cli {

// The report for people. `is_live`: the last start has not ended, and its watchdog answers.
std::string describe_report(const recovery::RunReport& report, bool is_live);

}  // namespace holdfast::cli
