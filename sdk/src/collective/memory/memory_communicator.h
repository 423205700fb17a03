#pragma once

// The ranks of one host, in processes or threads: each has shared memory that it alone writes and all others read. Rank
// r adds segment r of the block straight from everybody's slots, in the shard tree's order, and copies the other
// segments from the ranks that added them. With as many shards as ranks each rank reads and writes about two blocks,
// whatever the number of ranks.
//
// A rank's memory is in two parts. Its arena is new in each generation: SignalWord at byte 0, whether the rank's
// segment is finite at byte 32, the slot numbers of the covering nodes at byte 64. Its blocks are the same in each
// generation, since memory that was never touched takes longer to write than a whole step of a small model: the slots,
// the segment, and the result, which peers do not read. Who still looks at the blocks of a generation that has ended
// sees what he should not trust; he cannot change them, and his waits have been cancelled for ever.

#include <memory>
#include <vector>

#include "collective/communicator.h"
#include "collective/meeting.h"
#include "collective/shard_deal.h"
#include "collective/shard_tree.h"
#include "holdfast/base/shared_memory.h"
#include "holdfast/base/signal_word.h"

namespace holdfast {

class MemoryCommunicator final : public Communicator {
 public:
  static constexpr std::size_t kArenaBytes = 4096;
  // Of the blocks of each rank; the same for every rank and size.
  static std::size_t blocks_bytes(const CommunicatorShape& shape);
  // Writes zeros into what reductions with so many slots write, so that its pages are there.
  static void touch_blocks(const CommunicatorShape& shape, std::span<std::byte> blocks, int used_slots);

  struct Memory {
    SharedMemory own_arena;            // zero-filled
    std::vector<SharedMemory> arenas;  // by rank, readable, with this rank's own left empty
    std::shared_ptr<SharedMemory> own_blocks;
    std::vector<std::shared_ptr<const SharedMemory>> blocks;  // by rank, readable; nobody looks at this rank's own
  };
  MemoryCommunicator(const CommunicatorShape& shape, Memory memory);

  int rank() const override { return shape_.rank; }
  int size() const override { return shape_.size; }
  std::vector<Slot> slots() override;
  Sums reduce(std::span<const int> covering_slots, FloatRange range, Deadline deadline) override;
  bool was_finite() const override { return was_finite_; }
  using Communicator::broadcast;
  void broadcast(std::span<const std::span<std::byte>> parts, int root, bool takes, Deadline deadline) override;
  void broadcast_arrays(std::span<const std::span<float>> arrays, int root, bool takes, Deadline deadline) override;
  void gather_all(std::span<const std::byte> own, std::span<std::byte> all, Deadline deadline) override;
  void barrier(Deadline deadline) override;
  bool is_cancelled() const override { return signal(shape_.rank).is_cancelled(); }

  // Ends every wait of every rank for this one. Any thread.
  void cancel();

 private:
  const std::byte* arena(int rank) const;
  const SignalWord& signal(int rank) const;
  bool have_all_arrived() const;
  const std::byte* blocks(int rank) const;
  const float* slot(int rank, std::uint32_t index) const;
  const float* segment(int rank) const;
  std::vector<const float*> leaves() const;
  FloatRange segment_of(int rank, FloatRange range) const;
  std::size_t slots_bytes() const;
  std::span<float> result();
  Sums parted(std::span<const float> block) const;
  void gather(FloatRange range);

  const CommunicatorShape shape_;
  const std::vector<SumInstruction> program_;
  std::vector<int> leaf_ranks_;  // the rank of each leaf of program_
  Memory memory_;
  std::uint32_t phase_ = 0;  // barriers passed
  bool was_finite_ = true;
};

// Adds leaves[k][range] by `program` into sum[0, range size). The temporaries stay in the first-level cache. Returns
// whether every sum is finite.
bool add_in_order(std::span<const SumInstruction> program, std::span<const float* const> leaves, FloatRange range,
                  float* sum);

}  // namespace holdfast
