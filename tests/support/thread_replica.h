#pragma once

// Runs replicas as threads of the test.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/rank_threads.h"
#include "train/context/replica_context.h"

namespace holdfast {

struct ThreadRun {
  int replicas = 1;
  int shards = 4;
  std::vector<int> assigned{};  // shards by rank; empty: as even as possible
  std::uint64_t seed = 3;
  int workers = 1;
  std::string run_directory{};
  std::vector<std::string> savepoint_copies{};
  std::shared_ptr<Supervision> supervision = std::make_shared<NoSupervision>();
  FileSystem* file_system = &posix_file_system();
  std::string device = "cpu";
  Precision precision = Precision::f32;
  std::int64_t memory_snapshot_every = 0;
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  std::chrono::milliseconds collective_timeout = std::chrono::seconds(60);
};

// Calls train(replica) on each rank, in threads. The first exception is rethrown.
inline void train_on_threads(const ThreadRun& run, const std::function<void(Replica&)>& train) {
  ThreadGroup group(run.replicas);
  run_ranks(run.replicas, group, [&](int rank) {
    auto context = std::make_shared<Replica::Context>();
    context->rank = rank;
    context->size = run.replicas;
    context->shards = run.shards;
    context->assigned = run.assigned;
    context->seed = run.seed;
    context->workers = run.workers;
    context->most_workers = run.workers;
    context->run_directory = run.run_directory;
    context->savepoint_copies = run.savepoint_copies;
    context->collective_timeout = run.collective_timeout;
    context->supervision = run.supervision;
    context->file_system = run.file_system;
    context->device = run.device;
    context->precision = run.precision;
    context->memory_snapshot_every = run.memory_snapshot_every;
    context->now = run.now;
    context->meeting = std::make_shared<ThreadMeeting>(group);
    Replica replica(std::move(context));
    train(replica);
  });
}

}  // namespace holdfast
