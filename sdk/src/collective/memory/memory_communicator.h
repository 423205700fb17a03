#pragma once

// Collectives of the ranks of one host, which may be processes or threads. Each rank has shared memory that only it
// writes and that all others read (shared_blocks.h).
//
// In a reduction rank r adds segment r of the block, directly from the slots of all ranks and in the shard tree's
// order. It then copies the other segments from the ranks that added them. With as many shards as ranks, each rank
// reads and writes about two blocks, independently of the number of ranks. See docs/decisions/sums.md.

#include <vector>

#include "collective/communicator.h"
#include "collective/meeting.h"
#include "collective/memory/shared_blocks.h"
#include "collective/shard_tree.h"

namespace holdfast {

class MemoryCommunicator final : public Communicator {
 public:
  static constexpr std::size_t kArenaBytes = SharedBlocks::kArenaBytes;
  using Memory = SharedBlocks::Memory;
  MemoryCommunicator(const CommunicatorShape& shape, Memory memory);

  int rank() const override { return shared_.rank(); }
  int size() const override { return shared_.ranks(); }
  std::vector<Slot> slots() override { return shared_.slots(); }
  void set_gradient_floats(std::size_t floats) override { shared_.set_gradient_floats(floats); }
  void set_passes(const ArrayPasses& passes) override { passes_ = passes; }
  Sums reduce(std::span<const int> covering_slots, FloatRange range, Deadline deadline) override;
  bool was_finite() const override { return was_finite_; }
  using Communicator::broadcast;
  void broadcast(std::span<const std::span<std::byte>> parts, int root, bool takes, Deadline deadline) override;
  void broadcast_arrays(std::span<const std::span<float>> arrays, int root, bool takes, Deadline deadline) override;
  void gather_all(std::span<const std::byte> own, std::span<std::byte> all, Deadline deadline) override;
  void barrier(Deadline deadline) override { shared_.barrier(deadline); }
  bool is_cancelled() const override { return shared_.is_cancelled(); }

  // Cancels all waits of all ranks for this one, for good. Any thread.
  void cancel() { shared_.cancel(); }

 private:
  bool add_segment(FloatRange segment);

  const std::vector<SumInstruction> program_;
  SharedBlocks shared_;
  ArrayPasses passes_ = pass_alone;
  bool was_finite_ = true;
};

}  // namespace holdfast
