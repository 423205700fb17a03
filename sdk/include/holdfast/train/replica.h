#pragma once

// This process's place in a mirrored run: which rank it is, of how many, and what the run was started with. After a
// failure of another replica, inside a call of the Trainer, rank and size may be others than before. supervise()
// hands it to the training function; a Trainer takes it from there. Replica::alone() makes one for a program that
// trains without a watchdog.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/compute/precision.h"

namespace holdfast {

// One failure of a replica of the run, after which it was replaced.
struct RestartRecord {
  int generation = 0;  // that ended
  int rank = 0;        // that failed; -1: a process that was part of no generation yet
  std::string cause;
  double detected_unix_seconds = 0;
  std::int64_t step = 0;  // that the failed rank had reached
};

struct AloneOptions {
  std::uint64_t seed = 0;
  int shards = 1;
  int threads_per_shard = 1;   // on a CPU
  std::string device = "cpu";  // or "cuda:0", "cuda:1", ...
  Precision precision = Precision::f32;
};

class Replica {
 public:
  // Throws Error: invalid_argument for what does not fit together, unavailable for a device that is not there. On a
  // device, Trainers of one process are for one thread.
  static Replica alone(const AloneOptions& options = {});

  int rank() const;
  int size() const;
  // One rank has the effects that must happen once: files, printed lines.
  bool is_primary() const { return rank() == 0; }
  std::uint64_t seed() const;
  int shards() const;
  int generation() const;
  // Empty when nobody supervises.
  const std::string& run_directory() const;
  // Of this run and of earlier starts of the program, once the kernel has confirmed the end: the last may be missing.
  std::vector<RestartRecord> restarts() const;

  // For Holdfast's own use.
  struct Place;
  explicit Replica(std::shared_ptr<Place> place);
  const std::shared_ptr<Place>& shared_place() const { return place_; }

 private:
  std::shared_ptr<Place> place_;
};

}  // namespace holdfast
