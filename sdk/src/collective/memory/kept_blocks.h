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
    make(SharedBlocks::blocks_bytes(shape));
    SharedBlocks::touch(shape, blocks_->writable(), used_slots);
  }

  // A program without a run directory prepares nothing, and its Trainers may be of different sizes.
  const std::shared_ptr<SharedMemory>& blocks_for(const CommunicatorShape& shape) {
    const std::size_t bytes = SharedBlocks::blocks_bytes(shape);
    if (!blocks_ || blocks_->size_bytes() < bytes) make(bytes);
    return blocks_;
  }

 private:
  void make(std::size_t bytes) {
    blocks_ = std::make_shared<SharedMemory>(SharedMemory::create("holdfast-blocks", bytes));
  }

  std::shared_ptr<SharedMemory> blocks_;
};

}  // namespace holdfast
