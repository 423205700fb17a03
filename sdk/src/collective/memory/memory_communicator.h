#pragma once

// Collectives of the ranks of one host, which may be processes or threads. Each rank has shared memory that only it
// writes and that all others read.
//
// In a reduction rank r adds segment r of the block, directly from the slots of all ranks and in the shard tree's
// order. It then copies the other segments from the ranks that added them. With as many shards as ranks, each rank
// reads and writes about two blocks, independently of the number of ranks.
//
// A rank's memory has two parts:
// - The arena, new in each generation: a SignalWord at byte 0; at byte 32 whether the rank's segment is finite; from
//   byte 64 on the slot numbers of its covering nodes.
// - The blocks, the same in all generations: the slots, the segment, and the result, which peers do not read. New
//   blocks would cost more than a whole step of a small model, all of it for pages that were never touched.
//
// A process of a generation that has ended may still read these blocks. It gets wrong numbers, but cannot pass them on:
// its arena is not used any more, and all waits on it stay cancelled. See docs/decisions/sums.md.

#include <memory>
#include <vector>

#include "collective/communicator.h"
#include "collective/meeting.h"
#include "collective/shard_assignment.h"
#include "collective/shard_tree.h"
#include "holdfast/base/shared_memory.h"
#include "holdfast/base/signal_word.h"

namespace holdfast {

class MemoryCommunicator final : public Communicator {
 public:
  static constexpr std::size_t kArenaBytes = 4096;
  // The size of a rank's blocks. It depends on neither `rank` nor `size`.
  static std::size_t blocks_bytes(const CommunicatorShape& shape);
  // Writes zeros to all bytes that reductions with so many slots write. This makes the kernel allocate their pages
  // before the first step.
  static void touch_blocks(const CommunicatorShape& shape, std::span<std::byte> blocks, int used_slots);

  struct Memory {
    SharedMemory own_arena;            // zero-filled
    std::vector<SharedMemory> arenas;  // by rank, readable; the entry of this rank is empty
    std::shared_ptr<SharedMemory> own_blocks;
    std::vector<std::shared_ptr<const SharedMemory>> blocks;  // by rank, readable; the entry of this rank is not used
  };
  MemoryCommunicator(const CommunicatorShape& shape, Memory memory);

  int rank() const override { return shape_.rank; }
  int size() const override { return shape_.size; }
  std::vector<Slot> slots() override;
  void set_gradient_floats(std::size_t floats) override;
  void set_passes(const ArrayPasses& passes) override { passes_ = passes; }
  Sums reduce(std::span<const int> covering_slots, FloatRange range, Deadline deadline) override;
  bool was_finite() const override { return was_finite_; }
  using Communicator::broadcast;
  void broadcast(std::span<const std::span<std::byte>> parts, int root, bool takes, Deadline deadline) override;
  void broadcast_arrays(std::span<const std::span<float>> arrays, int root, bool takes, Deadline deadline) override;
  void gather_all(std::span<const std::byte> own, std::span<std::byte> all, Deadline deadline) override;
  void barrier(Deadline deadline) override;
  bool is_cancelled() const override { return signal(shape_.rank).is_cancelled(); }

  // Cancels all waits of all ranks for this one, for good. Any thread.
  void cancel();

 private:
  const std::byte* arena(int rank) const;
  const SignalWord& signal(int rank) const;
  bool have_all_arrived() const;
  const std::byte* blocks(int rank) const;
  const float* slot(int rank, std::uint32_t index) const;
  const float* segment(int rank) const;
  std::vector<const float*> leaves() const;
  std::size_t slots_bytes() const;
  std::span<float> result();
  Sums parted(std::span<const float> block) const;
  void gather(FloatRange range);
  bool add_segment(FloatRange segment);

  CommunicatorShape shape_;
  const std::vector<SumInstruction> program_;
  std::vector<int> leaf_ranks_;  // the rank of each leaf of program_
  Memory memory_;
  ArrayPasses passes_ = pass_alone;
  std::uint32_t phase_ = 0;  // barriers that this rank has entered
  bool was_finite_ = true;
};

// Adds `range` of the leaves as `program` says, into sum[0, range.end - range.begin). Works on blocks of 1024 floats,
// so that the temporaries stay in the caches. Returns whether all sums are finite.
bool add_in_order(std::span<const SumInstruction> program, std::span<const float* const> leaves, FloatRange range,
                  float* sum);

}  // namespace holdfast
