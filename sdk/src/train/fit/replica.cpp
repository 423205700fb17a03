#include "holdfast/train/replica.h"

#include <fmt/format.h>

#include "collective/memory/memory_meeting.h"
#include "holdfast/base/error.h"
#include "train/context/devices.h"
#include "train/context/place.h"

namespace holdfast {

Replica Replica::alone(const AloneOptions& options) {
  if (options.shards < 1 || options.threads_per_shard < 1) {
    throw Error(ErrorCode::invalid_argument, fmt::format("shards ({}) and threads per shard ({}) must be at least 1",
                                                         options.shards, options.threads_per_shard));
  }
  check_device(options.device, options.precision);
  auto place = std::make_shared<Place>();
  place->device = options.device;
  place->precision = options.precision;
  place->seed = options.seed;
  place->shards = options.shards;
  place->threads_per_shard = options.threads_per_shard;
  place->meeting = MemoryMeeting::alone();
  return Replica(std::move(place));
}

Replica::Replica(std::shared_ptr<Place> place) : place_(std::move(place)) {}

int Replica::rank() const {
  return place_->rank;
}
int Replica::size() const {
  return place_->size;
}
std::uint64_t Replica::seed() const {
  return place_->seed;
}
int Replica::shards() const {
  return place_->shards;
}
int Replica::generation() const {
  return place_->generation;
}
const std::string& Replica::run_directory() const {
  return place_->run_directory;
}
std::vector<RestartRecord> Replica::restarts() const {
  return place_->restarts();
}

}  // namespace holdfast
