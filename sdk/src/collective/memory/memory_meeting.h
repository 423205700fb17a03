#pragma once

// A meeting of the ranks of one host, which read each other's shared memory. docs/decisions/sums.md

#include <functional>
#include <memory>

#include "collective/meeting.h"
#include "collective/memory/kept_blocks.h"
#include "collective/memory/memory_communicator.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast {

class MemoryMeeting final : public Meeting {
 public:
  // Shows this rank's blocks to the others, and returns what all ranks show. May block, and throw GenerationEnded.
  using Exchange = std::function<MemoryCommunicator::Memory(const CommunicatorShape& shape,
                                                            const std::shared_ptr<SharedMemory>& blocks)>;

  explicit MemoryMeeting(Exchange exchange) : exchange_(std::move(exchange)) {}
  // A meeting of one rank.
  static std::shared_ptr<MemoryMeeting> alone();

  void prepare(const CommunicatorShape& shape, int used_slots) override { blocks_.prepare(shape, used_slots); }
  std::unique_ptr<Communicator> connect(const CommunicatorShape& shape) override;

 private:
  const Exchange exchange_;
  KeptBlocks blocks_;
};

}  // namespace holdfast
