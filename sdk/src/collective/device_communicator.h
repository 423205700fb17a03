#pragma once

// Collectives of a training whose arrays lie on a device. The host's own communicator still does everything that
// concerns the host: barriers, small exchanges, the tails of the blocks, and the end of a generation. Only the host's
// communicator knows that a generation has ended, since NCCL does not report the death of a peer.
// See docs/decisions/nccl.md.

#include <chrono>
#include <functional>
#include <memory>

#include "collective/communicator.h"
#include "collective/shard_assignment.h"
#include "holdfast/core/memory_space.h"

namespace holdfast {

struct DeviceCommunicatorShape {
  ShardAssignment assignment{};
  int hosts = 1;  // that have ranks
  int host = 0;   // of this rank
  int slots = 1;  // that this rank has
  std::size_t gradient_floats = 0;
  std::size_t tail_floats = 0;
  bool library_order = false;  // Reduction::fastest
  // Called after a failure, before the collectives that are under way on the device are aborted.
  std::function<void()> leaving = [] {};
  std::chrono::milliseconds connect_timeout = std::chrono::minutes(1);
};

// `host` has blocks that consist of the tail alone. All arrays lie in `memory`, which must outlive the communicator. A
// single rank needs only its device; several ranks need the CUDA back end with NCCL. Throws Error{unavailable} if that
// is missing.
std::unique_ptr<Communicator> make_device_communicator(std::unique_ptr<Communicator> host, MemorySpace& memory,
                                                       const DeviceCommunicatorShape& shape);

}  // namespace holdfast
