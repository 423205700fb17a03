#pragma once

// The blocks of a rank, which stay from generation to generation. New memory would cost more than a whole step of a
// small model.

#include <memory>

#include "collective/meeting.h"
#include "collective/memory/shared_blocks.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast {

class KeptBlocks {
 public:
  // Meeting::prepare().
  void prepare(const CommunicatorShape& shape, int used_slots) {
    SharedBlocks::touch(shape, make(blocks_, SharedBlocks::blocks_bytes(shape)).writable(), used_slots);
  }

  // A program without a run directory prepares nothing, and its Trainers may be of different sizes.
  const std::shared_ptr<SharedMemory>& blocks_for(const CommunicatorShape& shape) {
    const std::size_t bytes = SharedBlocks::blocks_bytes(shape);
    // Peers may still read the blocks of one communicator when this rank goes on with the other.
    std::shared_ptr<SharedMemory>& blocks = shape.is_second ? second_blocks_ : blocks_;
    if (!blocks || blocks->size_bytes() < bytes) make(blocks, bytes);
    return blocks;
  }

 private:
  static SharedMemory& make(std::shared_ptr<SharedMemory>& blocks, std::size_t bytes) {
    blocks = std::make_shared<SharedMemory>(SharedMemory::create("holdfast-blocks", bytes));
    return *blocks;
  }

  std::shared_ptr<SharedMemory> blocks_;
  std::shared_ptr<SharedMemory> second_blocks_;
};

}  // namespace holdfast
