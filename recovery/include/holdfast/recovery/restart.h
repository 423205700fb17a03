#pragma once

// A failure that a run has outlived, as the journal keeps it and Worker::restarts() returns it.

#include <cstdint>
#include <string>

namespace holdfast::recovery {

// A failure of a replica of the run, after which it was replaced.
struct Restart {
  int generation = 0;                // the generation that it ended
  int rank = 0;                      // of the replica; -1: the process was part of no generation yet
  std::string cause{};               // a sentence
  double detected_unix_seconds = 0;  // by the clock of the watchdog's host
  std::int64_t step = -1;            // that the replica was in; -1 before its first step
};

}  // namespace holdfast::recovery
