#pragma once

// A soak test: one long run in which a process is killed again and again. It shows whether training goes on, and
// whether the watchdog grows with each recovery. `holdfast chaos` uses it; resilience_test.h is for short tests.
//
//   const SoakResult result = soak({.command = {"./train", "--run-dir", "{run_dir}"}},
//                                  {.every = std::chrono::seconds(10), .time_limit = std::chrono::hours(1)});
//   EXPECT_LE(result.last.descriptors, result.first.descriptors);

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/testing/program_run.h"
#include "holdfast/testing/resilience_test.h"

namespace holdfast::resilience {

// How long, and how often, processes are killed.
struct SoakOptions {
  // The time between two kills.
  std::chrono::milliseconds every = std::chrono::seconds(5);
  // Decides which process is killed each time.
  std::uint64_t seed = 0;
  // The whole run may take this long. Afterwards every process of the program is killed.
  std::chrono::milliseconds time_limit = std::chrono::hours(24);
  // As RunOptions::run_directory.
  std::string run_directory{};
};

// The resources that the watchdog process holds at one moment.
struct WatchdogSize {
  std::int64_t resident_kilobytes = 0;  // physical memory
  // Open files.
  int descriptors = 0;
  int threads = 0;  // of the process
  // Children that ended and were not reaped.
  int zombies = 0;
};

// The watchdog must not grow: compare `first` with `last`.
struct SoakResult {
  RunResult run{};  // of the whole program
  int kills = 0;    // how many were sent
  // What it held before the first kill.
  WatchdogSize first{};
  // What it held before the last kill.
  WatchdogSize last{};
  // The highest value of each number. They may come from different moments.
  WatchdogSize most{};
};

// Runs the program, and sends SIGKILL to one of the watchdog's children after each period `every`. The child is drawn
// with the seed from those that are alive. Nothing is killed while no child is alive. Blocks until the run is over, and
// throws what run_program() throws.
SoakResult soak(const Program& program, const SoakOptions& options);

}  // namespace holdfast::resilience
