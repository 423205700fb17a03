#pragma once

// One long run in which a replica is killed again and again, and whether the watchdog grows by it.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/testing/program_run.h"
#include "holdfast/testing/resilience_test.h"

namespace holdfast::resilience {

struct SoakOptions {
  std::chrono::milliseconds every = std::chrono::seconds(5);
  std::uint64_t seed = 0;  // of who is killed
  std::chrono::milliseconds time_limit = std::chrono::hours(24);
  std::string run_directory{};  // as RunOptions has it
};

// What the watchdog holds.
struct WatchdogSize {
  std::int64_t resident_kilobytes = 0;
  int descriptors = 0;
  int threads = 0;
  int zombies = 0;  // children that nobody has reaped
};

struct SoakResult {
  RunResult run{};
  int kills = 0;
  WatchdogSize first{};  // before the first kill
  WatchdogSize last{};   // before the last one
  WatchdogSize most{};   // each the most that was seen
};

// Sends SIGKILL to one of the watchdog's children each `every`, drawn from the seed among those that live, from when
// there are any. Blocks, and throws, as run_program() does.
SoakResult soak(const Program& program, const SoakOptions& options);

}  // namespace holdfast::resilience
