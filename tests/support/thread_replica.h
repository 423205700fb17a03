#pragma once

// Runs replicas as threads of the test.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/rank_threads.h"
#include "train/context/place.h"

namespace holdfast {

struct ThreadRun {
  int replicas = 1;
  int shards = 4;
  std::vector<int> dealt{};  // shards by rank; empty: as even as possible
  std::uint64_t seed = 3;
  int workers = 1;
  std::string run_directory{};
  std::vector<std::string> savepoint_copies{};
  std::shared_ptr<Supervision> supervision = std::make_shared<NoSupervision>();
  FileSystem* file_system = &posix_file_system();
  std::string device = "cpu";
  std::int64_t memory_snapshot_every = 0;
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  std::chrono::milliseconds collective_timeout = std::chrono::seconds(60);
};

// Calls train(replica) on each rank, in threads. The first exception is rethrown.
inline void train_on_threads(const ThreadRun& run, const std::function<void(Replica&)>& train) {
  ThreadGroup group(run.replicas);
  run_ranks(run.replicas, group, [&](int rank) {
    auto place = std::make_shared<Replica::Place>();
    place->rank = rank;
    place->size = run.replicas;
    place->shards = run.shards;
    place->dealt = run.dealt;
    place->seed = run.seed;
    place->workers = run.workers;
    place->most_workers = run.workers;
    place->run_directory = run.run_directory;
    place->savepoint_copies = run.savepoint_copies;
    place->collective_timeout = run.collective_timeout;
    place->supervision = run.supervision;
    place->file_system = run.file_system;
    place->device = run.device;
    place->memory_snapshot_every = run.memory_snapshot_every;
    place->now = run.now;
    place->meeting = std::make_shared<ThreadMeeting>(group);
    Replica replica(std::move(place));
    train(replica);
  });
}

}  // namespace holdfast
