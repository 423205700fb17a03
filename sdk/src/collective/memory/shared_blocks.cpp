// Where things lie in the memory of a rank, and the barrier that orders the accesses to it. What is written before a
// barrier is visible to the other ranks of the host after it. See docs/decisions/sums.md.

#include "collective/memory/shared_blocks.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "collective/shard_tree.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

// The layout of an arena, which shared_blocks.h describes.
constexpr std::size_t kFiniteOffset = 32;
constexpr std::size_t kSlotTableOffset = 64;
constexpr std::size_t kMaximumCoveringNodes = (SharedBlocks::kArenaBytes - kSlotTableOffset) / sizeof(std::uint32_t);

// What a broadcast copies at a time: small enough that the takers find the root's copy in the cache.
constexpr std::size_t kPieceBytes = std::size_t{2} * 1024 * 1024;

}  // namespace

// The segment and the result have the size of a block each. A segment is mostly smaller, but pages that are never
// touched cost no memory.
std::size_t SharedBlocks::blocks_bytes(const CommunicatorShape& shape) {
  return (static_cast<std::size_t>(shape.slots) + 2) * std::max(shape.float_count, shape.most_floats) * sizeof(float);
}

void SharedBlocks::touch(const CommunicatorShape& shape, std::span<std::byte> blocks, int used_slots) {
  HOLDFAST_ASSERT(blocks.size() >= blocks_bytes(shape) && used_slots <= shape.slots);
  const std::size_t block_bytes = shape.float_count * sizeof(float);
  const auto fill = [&](std::size_t block, std::size_t bytes) {
    std::memset(blocks.data() + block * block_bytes, 0, bytes);
  };
  const auto all_slots = static_cast<std::size_t>(shape.slots);
  fill(0, static_cast<std::size_t>(used_slots) * block_bytes);
  // The first segment is the longest.
  fill(all_slots, segment_of(0, shape.size, {0, shape.float_count}).end * sizeof(float));
  fill(all_slots + 1, block_bytes);
}

SharedBlocks::SharedBlocks(const CommunicatorShape& shape, Ranks ranks, Memory memory)
    : ranks_(ranks), rank_(shape.rank - ranks.first), shape_(shape), memory_(std::move(memory)) {
  HOLDFAST_ASSERT(shape.float_count > 0 && shape.float_count % kLineFloats == 0 &&
                  shape.tail_floats <= shape.float_count);
  HOLDFAST_ASSERT(memory_.own_arena.size_bytes() >= kArenaBytes &&
                  memory_.own_blocks->size_bytes() >= blocks_bytes(shape));
  HOLDFAST_ASSERT(rank_ >= 0 && rank_ < ranks.count && ranks.first + ranks.count <= shape.size &&
                  shape.assignment.ranks() == shape.size);
  HOLDFAST_ASSERT(static_cast<int>(memory_.arenas.size()) == ranks.count &&
                  static_cast<int>(memory_.blocks.size()) == ranks.count);
  const ShardTree tree(shape.assignment.shards());
  for (int rank = 0; rank < ranks.count; ++rank) {
    const std::size_t nodes = tree.covering_nodes(shape.assignment.of(ranks.first + rank)).size();
    HOLDFAST_ASSERT(nodes > 0 && nodes <= kMaximumCoveringNodes);
    leaf_ranks_.insert(leaf_ranks_.end(), nodes, rank);
    HOLDFAST_ASSERT(rank == rank_ ||
                    memory_.blocks[static_cast<std::size_t>(rank)]->size_bytes() >= blocks_bytes(shape));
  }
}

const std::byte* SharedBlocks::arena(int rank) const {
  const SharedMemory& memory = rank == rank_ ? memory_.own_arena : memory_.arenas[static_cast<std::size_t>(rank)];
  return memory.readable().data();
}

const std::byte* SharedBlocks::blocks(int rank) const {
  const SharedMemory& memory = rank == rank_ ? *memory_.own_blocks : *memory_.blocks[static_cast<std::size_t>(rank)];
  return memory.readable().data();
}

const float* SharedBlocks::slot(int rank, std::uint32_t index) const {
  HOLDFAST_ASSERT(index < static_cast<std::uint32_t>(shape_.slots));
  return reinterpret_cast<const float*>(blocks(rank)) + index * shape_.float_count;
}

// Right after the slots of every rank, so peers find it without asking.
const float* SharedBlocks::segment(int rank) const {
  return slot(rank, 0) + static_cast<std::size_t>(shape_.slots) * shape_.float_count;
}

std::span<float> SharedBlocks::result() {
  // The last block, after the slots and the segment. Peers never read it.
  auto* const first = reinterpret_cast<float*>(memory_.own_blocks->writable().data());
  return {first + static_cast<std::size_t>(shape_.slots + 1) * shape_.float_count, shape_.float_count};
}

Sums SharedBlocks::parted(std::span<const float> block) const {
  const std::size_t gradients = shape_.float_count - shape_.tail_floats;
  return {block.first(gradients), block.subspan(gradients)};
}

std::size_t SharedBlocks::slots_bytes() const {
  return static_cast<std::size_t>(shape_.slots) * shape_.float_count * sizeof(float);
}

// The pieces lie in the slots, not in the segment: a peer may still be reading this rank's segment of the last sum.
std::size_t SharedBlocks::piece_bytes() const {
  return std::min(kPieceBytes, slots_bytes() / 2);
}

// The blocks were made for more, so they are only divided anew. All ranks do this at the same call, since all read each
// other's slots by these sizes.
void SharedBlocks::set_gradient_floats(std::size_t floats) {
  const std::size_t before = shape_.float_count;
  shape_.float_count = floats + shape_.tail_floats;
  HOLDFAST_ASSERT(floats % kLineFloats == 0 && shape_.float_count <= std::max(before, shape_.most_floats));
  shape_.most_floats = std::max(before, shape_.most_floats);
}

std::vector<Slot> SharedBlocks::slots() {
  auto* first = reinterpret_cast<float*>(memory_.own_blocks->writable().data());
  const std::size_t gradients = shape_.float_count - shape_.tail_floats;
  std::vector<Slot> slots;
  for (int index = 0; index < shape_.slots; ++index) {
    const std::span<float> block(first + static_cast<std::size_t>(index) * shape_.float_count, shape_.float_count);
    slots.push_back({block.first(gradients), block.subspan(gradients)});
  }
  return slots;
}

void SharedBlocks::show_covering_slots(std::span<const int> covering_slots) {
  auto* table = memory_.own_arena.writable().data() + kSlotTableOffset;
  for (std::size_t node = 0; node < covering_slots.size(); ++node) {
    const auto index = static_cast<std::uint32_t>(covering_slots[node]);
    std::memcpy(table + node * sizeof index, &index, sizeof index);
  }
}

std::vector<const float*> SharedBlocks::leaves() const {
  std::vector<const float*> leaves;
  std::size_t of_rank = 0;
  // Leaves of a rank follow one another, so their number within the rank begins anew with each rank.
  for (std::size_t leaf = 0; leaf < leaf_ranks_.size(); ++leaf) {
    const int rank = leaf_ranks_[leaf];
    of_rank = leaf > 0 && leaf_ranks_[leaf - 1] == rank ? of_rank + 1 : 0;
    std::uint32_t index = 0;
    // Copied, as the bytes of another process are not an object of this one.
    std::memcpy(&index, arena(rank) + kSlotTableOffset + of_rank * sizeof index, sizeof index);
    leaves.push_back(slot(rank, index));
  }
  return leaves;
}

void SharedBlocks::show_finite(bool is_finite) {
  memory_.own_arena.writable()[kFiniteOffset] = static_cast<std::byte>(is_finite);
}

bool SharedBlocks::are_finite(int ranks) const {
  for (int rank = 0; rank < ranks; ++rank) {
    if (arena(rank)[kFiniteOffset] == std::byte{0}) return false;
  }
  return true;
}

void SharedBlocks::gather(FloatRange range, int ranks, const ArrayPasses& passes) {
  const std::span<float> all = result();
  for (int rank = 0; rank < ranks; ++rank) {
    const FloatRange part = segment_of(rank, ranks, range);
    const auto copy = [&](std::size_t begin, std::size_t end) {
      std::memcpy(all.data() + part.begin + begin, segment(rank) + begin, (end - begin) * sizeof(float));
    };
    // Two floats for each item: one is read and one written.
    passes(part.end - part.begin, 2, std::ref(copy));
  }
}

bool SharedBlocks::have_all_arrived() const {
  for (int rank = 0; rank < ranks_.count; ++rank) {
    if (!has_arrived(rank)) return false;
  }
  return true;
}

void SharedBlocks::barrier(Deadline deadline) {
  // The own word first: a rank that waited before it counts would let all ranks wait for each other.
  own_signal().count_up();
  ++phase_;
  for (int rank = 0; rank < ranks_.count; ++rank) {
    switch (signal(rank).wait_until(phase_, deadline)) {
      case SignalWord::Outcome::reached:
        break;
      case SignalWord::Outcome::cancelled:
        throw GenerationEnded(
            fmt::format("the generation was ended while rank {} waited for rank {}", shape_.rank, ranks_.first + rank));
      case SignalWord::Outcome::deadline_passed:
        throw Error(ErrorCode::deadline_exceeded,
                    fmt::format("rank {} reached its deadline while waiting for rank {}, which is slow or hangs; it "
                                "has entered {} of {} barriers",
                                shape_.rank, ranks_.first + rank, signal(rank).count(), phase_));
    }
  }
}

void SharedBlocks::cancel() {
  own_signal().cancel();
}

}  // namespace holdfast
