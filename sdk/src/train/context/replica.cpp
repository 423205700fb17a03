#include "holdfast/train/replica.h"

#include <fmt/format.h>

#include <algorithm>

#include "collective/memory/memory_meeting.h"
#include "holdfast/base/cores.h"
#include "holdfast/base/error.h"
#include "train/context/devices.h"
#include "train/context/replica_context.h"

namespace holdfast {

// Shards run side by side as far as there are cores for them, as in a supervised run; their sums have one order all the
// same. A device computes its shards one after the other.
static int workers_alone(const AloneOptions& options) {
  if (options.device != "cpu") return 1;
  return std::clamp(core_count() / options.threads_per_shard, 1, options.shards);
}

Replica Replica::alone(const AloneOptions& options) {
  if (options.shards < 1 || options.threads_per_shard < 1) {
    throw Error(ErrorCode::invalid_argument, fmt::format("shards ({}) and threads per shard ({}) must be at least 1",
                                                         options.shards, options.threads_per_shard));
  }
  // Here and not in fit(), so that a missing device is found before data is read.
  check_device(options.device, options.precision);
  auto context = std::make_shared<Context>();
  context->device = options.device;
  context->precision = options.precision;
  context->seed = options.seed;
  context->shards = options.shards;
  context->threads_per_shard = options.threads_per_shard;
  context->workers = workers_alone(options);
  context->most_workers = context->workers;
  // A meeting of one: a program without a watchdog takes the same steps as a run of several replicas.
  context->meeting = MemoryMeeting::alone();
  return Replica(std::move(context));
}

Replica::Replica(std::shared_ptr<Context> context) : context_(std::move(context)) {}

int Replica::rank() const {
  return context_->rank;
}
int Replica::size() const {
  return context_->size;
}
std::uint64_t Replica::seed() const {
  return context_->seed;
}
int Replica::shards() const {
  return context_->shards;
}
int Replica::generation() const {
  return context_->generation;
}
const std::string& Replica::run_directory() const {
  return context_->run_directory;
}
std::vector<RestartRecord> Replica::restarts() const {
  return context_->restarts();
}

}  // namespace holdfast
