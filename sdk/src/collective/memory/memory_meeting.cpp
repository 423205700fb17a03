// Blocks stay from generation to generation. New memory would cost more than a whole step of a small model.

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

void MemoryMeeting::prepare(const CommunicatorShape& shape, int used_slots) {
  blocks_ =
      std::make_shared<SharedMemory>(SharedMemory::create("holdfast-blocks", MemoryCommunicator::blocks_bytes(shape)));
  MemoryCommunicator::touch_blocks(shape, blocks_->writable(), used_slots);
}

std::unique_ptr<Communicator> MemoryMeeting::connect(const CommunicatorShape& shape) {
  // A program without a run directory prepares nothing, and its Trainers may be of different sizes.
  const std::size_t bytes = MemoryCommunicator::blocks_bytes(shape);
  if (!blocks_ || blocks_->size_bytes() < bytes) {
    blocks_ = std::make_shared<SharedMemory>(SharedMemory::create("holdfast-blocks", bytes));
  }
  return std::make_unique<MemoryCommunicator>(shape, exchange_(shape, blocks_));
}

}  // namespace holdfast
