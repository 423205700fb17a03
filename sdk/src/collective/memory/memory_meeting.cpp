#include "collective/memory/memory_meeting.h"

#include <utility>
#include <vector>

namespace holdfast {

std::shared_ptr<MemoryMeeting> MemoryMeeting::alone() {
  return std::make_shared<MemoryMeeting>(
      [](const CommunicatorShape&, const std::shared_ptr<SharedMemory>& blocks) -> MemoryCommunicator::Memory {
        return {.own_arena = SharedMemory::create("holdfast-arena", MemoryCommunicator::kArenaBytes),
                .arenas = std::vector<SharedMemory>(1),
                .own_blocks = blocks,
                .blocks = {blocks}};
      });
}

std::unique_ptr<Communicator> MemoryMeeting::connect(const CommunicatorShape& shape) {
  return std::make_unique<MemoryCommunicator>(shape, exchange_(shape, blocks_.blocks_for(shape)));
}

}  // namespace holdfast
