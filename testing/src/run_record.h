#pragma once

// What a run left in its run directory.

#include <string>

#include "holdfast/testing/program_run.h"

namespace holdfast::resilience {

// For parse_fault(): the program itself knows how many it has.
inline constexpr int kMostRanks = 1024;

// Fills in what the journal and the marks of faults tell; `result` keeps what it has of the rest. Lines that are torn
// or of other makers are passed over.
void read_record(const std::string& run_directory, RunResult& result);

// Of the newest watchdog in the journal; 0: none has begun yet.
int watchdog_pid(const std::string& run_directory);

}  // namespace holdfast::resilience
