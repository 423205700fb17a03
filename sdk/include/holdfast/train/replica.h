#pragma once

// A Replica is this process's membership in a mirrored run: its rank, the number of replicas, and what the run was
// started with. supervise() hands it to the training function, and a Trainer takes it from there. Replica::alone()
// makes one for a program that trains without a watchdog:
//
//   Replica replica = Replica::alone({.seed = 7, .shards = 4});
//   Trainer trainer(replica, model, Adam(1e-3F), MeanSquaredError());
//
// After the failure of another replica, rank and size may change inside a call of the Trainer.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/compute/precision.h"

namespace holdfast {

// One failure of a replica of the run, after which it was replaced.
struct RestartRecord {
  int generation = 0;                // the generation that ended
  int rank = 0;                      // the rank that failed; -1: a process that had not joined a generation
  std::string cause;                 // a sentence
  double detected_unix_seconds = 0;  // when the watchdog noticed it
  std::int64_t step = 0;             // the step that the failed rank had reached
};

// What Replica::alone() takes instead of the options of a run.
struct AloneOptions {
  std::uint64_t seed = 0;  // of all random draws
  // Each batch is cut into so many; a run with as many gets the same bits. A CPU computes as many of them side by side
  // as it has cores for.
  int shards = 1;
  int threads_per_shard = 1;             // on a CPU
  std::string device = "cpu";            // or "cuda:0", "cuda:1", ...
  Precision precision = Precision::f32;  // of products; see precision.h
};

// A handle: copies stand for the same membership. The functions without a note on threads are for the thread that
// trains.
class Replica {
 public:
  // Throws Error: invalid_argument for options that contradict each other, unavailable for a device that is not there.
  // On a device, all Trainers of one process belong to one thread.
  static Replica alone(const AloneOptions& options = {});

  // From 0 to size() - 1.
  int rank() const;
  int size() const;  // the number of replicas in this generation
  // True on one rank, which has the effects that must happen once: files, printed lines.
  bool is_primary() const { return rank() == 0; }
  std::uint64_t seed() const;  // of all random draws of the run
  int shards() const;          // into which each batch is cut
  // Counts the memberships of the run. Each failure begins another one.
  int generation() const;
  // Empty when there is no watchdog.
  const std::string& run_directory() const;
  // The failures of this run and of earlier starts of the program, oldest first. One is listed once the kernel has
  // confirmed the end of its process, so the newest may be missing.
  std::vector<RestartRecord> restarts() const;

  // For Holdfast's own use.
  struct Context;
  explicit Replica(std::shared_ptr<Context> context);                          // for Holdfast's own use
  const std::shared_ptr<Context>& shared_context() const { return context_; }  // for Holdfast's own use

 private:
  std::shared_ptr<Context> context_;
};

}  // namespace holdfast
