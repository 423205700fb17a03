#pragma once

// The ranks of one host, in processes or threads: each has an arena of shared memory that it alone writes and all
// others read. Rank r adds segment r of the block straight from everybody's slots, in the shard tree's order, and
// copies the other segments from the ranks that added them. With as many shards as ranks each rank reads and writes
// about two blocks, whatever the number of ranks.
//
// An arena: SignalWord at byte 0, whether the rank's segment is finite at byte 32, the slot numbers of the covering
// nodes at byte 64, from byte 4096 on the slots, then the segment.

#include <memory>
#include <vector>

#include "collective/communicator.h"
#include "collective/shard_deal.h"
#include "collective/shard_tree.h"
#include "holdfast/base/shared_memory.h"
#include "holdfast/base/signal_word.h"

namespace holdfast {

struct MemoryCommunicatorShape {
  int rank = 0;
  int size = 1;
  ShardDeal deal{};
  int slots = 1;                // for each rank
  std::size_t float_count = 0;  // of the block; a multiple of 16

  // Bytes that each rank's arena must have.
  std::size_t arena_bytes() const;
};

class MemoryCommunicator final : public Communicator {
 public:
  // `own` is this rank's arena, zero-filled; `peers` are all ranks' by rank, readable, with this rank's own left empty.
  MemoryCommunicator(const MemoryCommunicatorShape& shape, SharedMemory own, std::vector<SharedMemory> peers);

  int rank() const override { return shape_.rank; }
  int size() const override { return shape_.size; }
  std::vector<std::span<float>> slots() override;
  std::span<const float> reduce(std::span<const int> covering_slots, FloatRange range, Deadline deadline) override;
  bool was_finite() const override { return was_finite_; }
  void broadcast(std::span<std::byte> bytes, int root, bool takes, Deadline deadline) override;
  void gather_all(std::span<const std::byte> own, std::span<std::byte> all, Deadline deadline) override;
  void barrier(Deadline deadline) override;

  // Ends every wait of every rank for this one. Any thread.
  void cancel();

 private:
  const std::byte* arena(int rank) const;
  const SignalWord& signal(int rank) const;
  const float* slot(int rank, std::uint32_t index) const;
  const float* segment(int rank) const;
  std::vector<const float*> leaves() const;
  FloatRange segment_of(int rank, FloatRange range) const;
  std::size_t slots_bytes() const;
  void gather(FloatRange range);

  const MemoryCommunicatorShape shape_;
  const std::vector<SumInstruction> program_;
  std::vector<int> leaf_ranks_;  // the rank of each leaf of program_
  SharedMemory own_;
  std::vector<SharedMemory> peers_;
  std::vector<float> result_;
  std::uint32_t phase_ = 0;  // barriers passed
  bool was_finite_ = true;
};

// Adds leaves[k][range] by `program` into sum[0, range size). The temporaries stay in the first-level cache. Returns
// whether every sum is finite.
bool add_in_order(std::span<const SumInstruction> program, std::span<const float* const> leaves, FloatRange range,
                  float* sum);

}  // namespace holdfast
