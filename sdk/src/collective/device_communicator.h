#pragma once

// Collectives of a training whose arrays lie on a device. Whatever the host does together goes through the host's own
// communicator: barriers, small exchanges, the tails of the blocks, and the news that a generation has ended.

#include <chrono>
#include <functional>
#include <memory>

#include "collective/communicator.h"
#include "collective/shard_deal.h"
#include "holdfast/core/memory_space.h"

namespace holdfast {

struct DeviceCommunicatorShape {
  ShardDeal deal{};
  int slots = 1;  // of this rank
  std::size_t gradient_floats = 0;
  std::size_t tail_floats = 0;
  bool in_the_librarys_order = false;  // Reduction::fastest
  // Called when ranks part because of a failure, before the device lets go of what they did together.
  std::function<void()> leaving = [] {};
  std::chrono::milliseconds connect_timeout = std::chrono::minutes(1);
};

// `host` has blocks of the tail alone. Arrays of the communicator, and those that it is given, lie in `memory`, which
// outlives it. One rank needs nothing but its device; several need the CUDA back end with NCCL. Throws
// Error{unavailable} where that is missing.
std::unique_ptr<Communicator> make_device_communicator(std::unique_ptr<Communicator> host, MemorySpace& memory,
                                                       const DeviceCommunicatorShape& shape);

}  // namespace holdfast
