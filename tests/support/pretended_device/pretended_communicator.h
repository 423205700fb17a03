#pragma once

// Collectives between pretended devices. Arrays on the devices travel through memory files that the ranks open of each
// other. With Reduction::fastest, sums go from the last rank to the first, so that the bits differ from shard order.

#include <memory>

#include "collective/communicator.h"
#include "collective/device_communicator.h"
#include "pretended_memory.h"

namespace holdfast {

std::unique_ptr<Communicator> make_pretended_communicator(std::unique_ptr<Communicator> host, PretendedMemory& memory,
                                                          const DeviceCommunicatorShape& shape);

}  // namespace holdfast
