#pragma once

// Reads what a run left in its run directory.

#include <string>

#include "holdfast/testing/program_run.h"

namespace holdfast::resilience {

// For parse_fault(), which checks ranks: only the program itself knows how many it has.
inline constexpr int kMostRanks = 1024;

// Fills in what the journal and the marks of faults say. Without a sentence in the journal, the last line of
// `result.output` is the sentence. Skips lines that are torn or that Holdfast did not write.
void read_record(const std::string& run_directory, RunResult& result);

// The process id of the newest watchdog in the journal; 0 if there is no watchdog yet.
int watchdog_pid(const std::string& run_directory);

}  // namespace holdfast::resilience
