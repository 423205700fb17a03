#pragma once

// What is inside a Replica: its rank, the run's fixed choices, and its connections to the watchdog, the file system and
// the other ranks. supervise() makes one for a replica process, Replica::alone() for a program that trains by itself,
// and unit tests make them for ranks that are threads.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collective/meeting.h"
#include "collective/shard_assignment.h"
#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"
#include "holdfast/base/whole_file.h"
#include "holdfast/compute/precision.h"
#include "holdfast/data/dataset.h"
#include "holdfast/train/reduction.h"
#include "holdfast/train/replica.h"
#include "train/context/step_profile.h"
#include "train/context/supervision.h"

namespace holdfast {

class SavingWatch;

// Thrown through the training function after a request to stop, once the savepoint is durable.
struct StopRequested {};

// The replicas compute different numbers, and it cannot be found which are right. A new process would fail in the same
// way.
class Undecided : public Error {
 public:
  explicit Undecided(const std::string& what) : Error(ErrorCode::diverged, what) {}
};

// The folder of a Trainer of the run: the first one has the run directory itself, the second one "DIRECTORY/trainer2".
// Without a run directory none has a folder: "/trainer2" would be in the root of the file system.
inline std::string directory_of_trainer(const std::string& run_directory, int trainer) {
  const bool is_its_own = trainer <= 0 || run_directory.empty();
  return is_its_own ? run_directory : run_directory + "/trainer" + std::to_string(trainer + 1);
}

struct Replica::Context {
  // Set by enter_generation(), for the generation that this process is part of.
  int rank = 0;
  int size = 1;
  int hosts = 1;                    // that have ranks
  int host = 0;                     // of this rank
  bool keeps_for_its_host = false;  // the lowest rank of its host, where rank 0 is on another one
  bool has_own_folders = false;     // the run directory is on this host alone; each host of the run has its own
  int generation = 0;
  std::string device = "cpu";   // that this process computes on: "cpu", "cuda:0"
  int workers = 1;              // shards that this replica computes at once, at most
  std::vector<int> assigned{};  // shards of each rank; empty: assigned evenly
  int saving_threads = 0;       // this replica's share of the host's cores; 0: all that the process has
  int cores = 0;                // that the host's replicas share; 0: all that the process has

  int most_workers = 1;  // the largest `workers` of any generation
  int shards = 1;
  int threads_per_shard = 1;
  std::uint64_t seed = 0;
  Precision precision = Precision::f32;
  Reduction reduction = Reduction::shard_order;
  int first_replicas = 1;  // of the run's first start; Reduction::fastest makes bits depend on it
  std::string run_directory;
  std::vector<std::string> savepoint_copies;
  bool accept_other_arithmetic = false;
  bool writes_files = true;                // false: the run is only inspected, for debugging
  std::int64_t memory_snapshot_every = 0;  // steps; 0: as often as costs little time
  // The clock that measures what these snapshots cost. Any thread.
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  std::chrono::milliseconds collective_timeout = std::chrono::minutes(5);
  std::function<std::vector<RestartRecord>()> restarts = [] { return std::vector<RestartRecord>(); };

  std::shared_ptr<Supervision> supervision = std::make_shared<NoSupervision>();
  FileSystem* file_system = &posix_file_system();
  std::unique_ptr<FileSystem> own_file_system;  // what file_system points to, if this Context owns it
  // The Trainer writes its savepoints through this: file_system, observed by saving_watch. Set by the first Trainer.
  std::unique_ptr<FileSystem> saving_files;
  std::shared_ptr<SavingWatch> saving_watch;
  StepProfile profile{};  // of this process
  // Blocks until this process is part of a new generation, and sets the first members above for it. `state_step` is the
  // step of the state that the process brings along, or -1. `keep_state` is called where the wait may end without
  // another generation; it keeps that state in memory that outlives the process.
  std::function<void(std::int64_t state_step, const std::function<void()>& keep_state)> enter_generation =
      [](std::int64_t, const std::function<void()>&) {};
  // Makes the communicator of each generation, with a deadline of collective_timeout.
  std::shared_ptr<Meeting> meeting;
  std::string results;  // results_text() of the finished calls of all Trainers; empty before the first one

  // A run has one Trainer at a time, and may have several, one after the other.
  bool has_trainer = false;
  int trainer = -1;                                 // number of the newest one, from 0 on
  std::int64_t earlier_steps = 0;                   // updates of the Trainers before it
  std::string earlier_results{};                    // `results` when it began
  std::map<std::size_t, SkippedSamples> skipped{};  // what skip_bad() left out of the data of its calls, if anything
  int ended_trainer = -1;                           // the last one before it that made a call
  std::string ended_state{};                        // which it ended with, as JSON; empty once that is recorded
  std::string open_call{};                          // that it did not finish: what is wrong
  bool is_in_generation = false;                    // that the one before was in, and the newest has not entered

  // Whether this rank writes savepoints: rank 0, and the lowest rank of each host that has a folder of its own.
  bool keeps_savepoints() const { return rank == 0 || (has_own_folders && keeps_for_its_host); }

  // Where the newest Trainer has its savepoints and records.
  std::string trainer_directory() const { return directory_of_trainer(run_directory, trainer); }
  std::vector<std::string> copies_of_trainer() const {
    std::vector<std::string> folders;
    for (const std::string& copy : savepoint_copies) folders.push_back(directory_of_trainer(copy, trainer));
    return folders;
  }

  ShardAssignment assignment() const {
    return assigned.empty() ? ShardAssignment::even(shards, size) : ShardAssignment(assigned);
  }
  // The assignment of a run without failures.
  ShardAssignment first_assignment() const { return ShardAssignment::even(shards, first_replicas); }
};

}  // namespace holdfast
