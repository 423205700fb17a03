#pragma once

// Collectives between pretended devices: what lies on devices goes through files in memory that
// the ranks show each other. The library's order is from the last rank to the first.

#include <memory>

#include "collective/communicator.h"
#include "collective/device_communicator.h"
#include "pretended_memory.h"

namespace holdfast {

std::unique_ptr<Communicator> make_pretended_communicator(std::unique_ptr<Communicator> host, PretendedMemory& memory,
                                                          const DeviceCommunicatorShape& shape);

}  // namespace holdfast
