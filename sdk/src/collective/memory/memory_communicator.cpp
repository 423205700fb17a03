// The shard-order sum in shared memory. A reduction has two barriers. After the first, all slots are written, so each
// rank adds its segment. After the second, all segments are written, so each rank copies them. An error on any rank
// therefore reaches its peers as a cancelled wait or as a deadline, never as a wrong sum.
//
// The order of the additions is add_in_order(), which works on blocks of floats so that the tree's temporaries stay in
// the caches. See docs/decisions/sums.md.

#include "collective/memory/memory_communicator.h"

#include <fmt/format.h>
#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <string>

#include "holdfast/base/error.h"
#include "holdfast/core/memory_space.h"

namespace holdfast {
namespace {

// The layout of an arena, which memory_communicator.h describes.
constexpr std::size_t kFiniteOffset = 32;
constexpr std::size_t kSlotTableOffset = 64;
constexpr std::size_t kMaximumCoveringNodes =
    (MemoryCommunicator::kArenaBytes - kSlotTableOffset) / sizeof(std::uint32_t);

// A temporary has 4 KiB. A tree over 2^20 shards needs 20 of them, which fit into the caches of a core.
constexpr std::size_t kBlockFloats = 1024;

// What a broadcast copies at a time: small enough that the takers find the root's copy in the cache.
constexpr std::size_t kPieceBytes = std::size_t{2} * 1024 * 1024;

// A loop that the compiler vectorises; the order within a pair is all that matters for bits.
void add(const float* left, const float* right, float* sum, std::size_t floats) {
  for (std::size_t i = 0; i < floats; ++i) sum[i] = left[i] + right[i];
}

std::size_t bytes_of(std::span<const std::span<std::byte>> parts) {
  std::size_t bytes = 0;
  for (const std::span<std::byte> part : parts) bytes += part.size();
  return bytes;
}

// Copies to and from several parts as if they were one array.
class PartsCursor {
 public:
  explicit PartsCursor(std::span<const std::span<std::byte>> parts) : parts_(parts) {}

  // Both copy until `piece` or the last part ends.
  void copy_to(std::span<std::byte> piece) {
    advance(piece.size(), [&](std::size_t at, std::span<std::byte> bytes) {
      std::memcpy(piece.data() + at, bytes.data(), bytes.size());
    });
  }
  void copy_from(std::span<const std::byte> piece) {
    advance(piece.size(), [&](std::size_t at, std::span<std::byte> bytes) {
      std::memcpy(bytes.data(), piece.data() + at, bytes.size());
    });
  }

 private:
  template <class Copy>
  void advance(std::size_t bytes, const Copy& copy) {
    for (std::size_t at = 0; at < bytes && part_ < parts_.size();) {
      const std::size_t count = std::min(bytes - at, parts_[part_].size() - begin_);
      if (count > 0) copy(at, parts_[part_].subspan(begin_, count));
      at += count;
      begin_ += count;
      if (begin_ < parts_[part_].size()) continue;
      ++part_;
      begin_ = 0;
    }
  }

  std::span<const std::span<std::byte>> parts_;
  std::size_t part_ = 0;
  std::size_t begin_ = 0;  // in the part
};

}  // namespace

bool add_in_order(std::span<const SumInstruction> program, std::span<const float* const> leaves, FloatRange range,
                  float* sum) {
  std::vector<float> temporaries(leaves.size() * kBlockFloats);
  // Pointers, so that a leaf is read where it lies.
  std::vector<const float*> stack(leaves.size());
  bool all_finite = true;
  for (std::size_t begin = range.begin; begin < range.end; begin += kBlockFloats) {
    const std::size_t floats = std::min(kBlockFloats, range.end - begin);
    std::size_t depth = 0;
    std::size_t next_leaf = 0;
    for (const SumInstruction instruction : program) {
      if (instruction == SumInstruction::push) {
        stack[depth++] = leaves[next_leaf++] + begin;
        continue;
      }
      // The sum replaces its left operand on the stack, so one temporary for each depth is enough.
      float* place = temporaries.data() + (depth - 2) * kBlockFloats;
      add(stack[depth - 2], stack[depth - 1], place, floats);
      stack[depth - 2] = place;
      --depth;
    }
    HOLDFAST_ASSERT(depth == 1);
    std::memcpy(sum + (begin - range.begin), stack[0], floats * sizeof(float));
    all_finite = host_memory().is_finite({stack[0], floats}) && all_finite;
  }
  return all_finite;
}

// The segment and the result have the size of a block each. A segment is mostly smaller, but pages that are never
// touched cost no memory.
std::size_t MemoryCommunicator::blocks_bytes(const CommunicatorShape& shape) {
  return (static_cast<std::size_t>(shape.slots) + 2) * std::max(shape.float_count, shape.most_floats) * sizeof(float);
}

void MemoryCommunicator::touch_blocks(const CommunicatorShape& shape, std::span<std::byte> blocks, int used_slots) {
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

MemoryCommunicator::MemoryCommunicator(const CommunicatorShape& shape, Memory memory)
    : shape_(shape),
      program_(sum_program(ShardTree(shape.assignment.shards()), shape.assignment.covering_nodes())),
      memory_(std::move(memory)) {
  HOLDFAST_ASSERT(shape.float_count > 0 && shape.float_count % kLineFloats == 0 &&
                  shape.tail_floats <= shape.float_count);
  HOLDFAST_ASSERT(memory_.own_arena.size_bytes() >= kArenaBytes &&
                  memory_.own_blocks->size_bytes() >= blocks_bytes(shape));
  HOLDFAST_ASSERT(static_cast<int>(memory_.arenas.size()) == shape.size &&
                  static_cast<int>(memory_.blocks.size()) == shape.size && shape.assignment.ranks() == shape.size);
  const ShardTree tree(shape.assignment.shards());
  for (int rank = 0; rank < shape.size; ++rank) {
    const std::size_t nodes = tree.covering_nodes(shape.assignment.of(rank)).size();
    HOLDFAST_ASSERT(nodes > 0 && nodes <= kMaximumCoveringNodes);
    leaf_ranks_.insert(leaf_ranks_.end(), nodes, rank);
    HOLDFAST_ASSERT(rank == shape.rank ||
                    memory_.blocks[static_cast<std::size_t>(rank)]->size_bytes() >= blocks_bytes(shape));
  }
}

const std::byte* MemoryCommunicator::arena(int rank) const {
  const SharedMemory& memory = rank == shape_.rank ? memory_.own_arena : memory_.arenas[static_cast<std::size_t>(rank)];
  return memory.readable().data();
}

const std::byte* MemoryCommunicator::blocks(int rank) const {
  const SharedMemory& memory =
      rank == shape_.rank ? *memory_.own_blocks : *memory_.blocks[static_cast<std::size_t>(rank)];
  return memory.readable().data();
}

const SignalWord& MemoryCommunicator::signal(int rank) const {
  return *reinterpret_cast<const SignalWord*>(arena(rank));
}

const float* MemoryCommunicator::slot(int rank, std::uint32_t index) const {
  HOLDFAST_ASSERT(index < static_cast<std::uint32_t>(shape_.slots));
  return reinterpret_cast<const float*>(blocks(rank)) + index * shape_.float_count;
}

// Right after the slots of every rank, so peers find it without asking.
const float* MemoryCommunicator::segment(int rank) const {
  return slot(rank, 0) + static_cast<std::size_t>(shape_.slots) * shape_.float_count;
}

std::span<float> MemoryCommunicator::result() {
  auto* const first = reinterpret_cast<float*>(memory_.own_blocks->writable().data());
  return {first + static_cast<std::size_t>(shape_.slots + 1) * shape_.float_count, shape_.float_count};
}

// The blocks were made for more, so they are only divided anew.
void MemoryCommunicator::set_gradient_floats(std::size_t floats) {
  const std::size_t before = shape_.float_count;
  shape_.float_count = floats + shape_.tail_floats;
  HOLDFAST_ASSERT(floats % kLineFloats == 0 && shape_.float_count <= std::max(before, shape_.most_floats));
  shape_.most_floats = std::max(before, shape_.most_floats);
}

std::vector<Slot> MemoryCommunicator::slots() {
  auto* first = reinterpret_cast<float*>(memory_.own_blocks->writable().data());
  const std::size_t gradients = shape_.float_count - shape_.tail_floats;
  std::vector<Slot> slots;
  for (int index = 0; index < shape_.slots; ++index) {
    const std::span<float> block(first + static_cast<std::size_t>(index) * shape_.float_count, shape_.float_count);
    slots.push_back({block.first(gradients), block.subspan(gradients)});
  }
  return slots;
}

// Peers may have chosen any slots, so their tables are read after the first barrier.
std::vector<const float*> MemoryCommunicator::leaves() const {
  std::vector<const float*> leaves;
  std::size_t of_rank = 0;
  for (std::size_t leaf = 0; leaf < leaf_ranks_.size(); ++leaf) {
    const int rank = leaf_ranks_[leaf];
    of_rank = leaf > 0 && leaf_ranks_[leaf - 1] == rank ? of_rank + 1 : 0;
    std::uint32_t index = 0;
    std::memcpy(&index, arena(rank) + kSlotTableOffset + of_rank * sizeof index, sizeof index);
    leaves.push_back(slot(rank, index));
  }
  return leaves;
}

Sums MemoryCommunicator::reduce(std::span<const int> covering_slots, FloatRange range, Deadline deadline) {
  HOLDFAST_ASSERT(range.begin <= range.end && range.end <= shape_.float_count);
  if (shape_.size == 1) {
    // Alone, the sum is there already: nothing is copied, and no barrier is entered.
    HOLDFAST_ASSERT(covering_slots.size() == 1);
    if (signal(0).is_cancelled()) throw GenerationEnded("the generation was ended during an all-reduce");
    const float* sum = slot(0, static_cast<std::uint32_t>(covering_slots[0]));
    std::atomic<bool> is_finite = true;
    const auto look = [&](std::size_t begin, std::size_t end) {
      if (!host_memory().is_finite({sum + range.begin + begin, end - begin})) is_finite = false;
    };
    passes_(range.end - range.begin, 1, std::ref(look));
    was_finite_ = is_finite;
    return parted({sum, shape_.float_count});
  }
  // Written before the barrier, which makes it visible to the peers.
  auto* table = memory_.own_arena.writable().data() + kSlotTableOffset;
  for (std::size_t node = 0; node < covering_slots.size(); ++node) {
    const auto index = static_cast<std::uint32_t>(covering_slots[node]);
    std::memcpy(table + node * sizeof index, &index, sizeof index);
  }
  barrier(deadline);
  const bool own_is_finite = add_segment(segment_of(shape_.rank, shape_.size, range));
  memory_.own_arena.writable()[kFiniteOffset] = static_cast<std::byte>(own_is_finite);
  // After this barrier no rank reads slots any more, so training may write them. Segments are written again only after
  // the first barrier of the next reduction, when all ranks have copied them.
  barrier(deadline);
  gather(range);
  was_finite_ = true;
  for (int rank = 0; rank < shape_.size; ++rank)
    was_finite_ = was_finite_ && arena(rank)[kFiniteOffset] != std::byte{0};
  return parted(result());
}

// Adds this rank's part of the sum. Returns whether it is finite.
bool MemoryCommunicator::add_segment(FloatRange part) {
  const std::vector<const float*> all_leaves = leaves();
  float* const sum = const_cast<float*>(segment(shape_.rank));
  std::atomic<bool> is_finite = true;
  // Each float is the sum of those at its place alone, so ranges may be cut anywhere.
  const auto add_range = [&](std::size_t begin, std::size_t end) {
    const FloatRange range = {part.begin + begin, part.begin + end};
    if (!add_in_order(program_, all_leaves, range, sum + begin)) is_finite = false;
  };
  passes_(part.end - part.begin, all_leaves.size() + 1, std::ref(add_range));
  return is_finite;
}

Sums MemoryCommunicator::parted(std::span<const float> block) const {
  const std::size_t gradients = shape_.float_count - shape_.tail_floats;
  return {block.first(gradients), block.subspan(gradients)};
}

// The result lies outside of the slots, which training writes while it reads the result.
void MemoryCommunicator::gather(FloatRange range) {
  const std::span<float> all = result();
  for (int rank = 0; rank < shape_.size; ++rank) {
    const FloatRange part = segment_of(rank, shape_.size, range);
    const auto copy = [&](std::size_t begin, std::size_t end) {
      std::memcpy(all.data() + part.begin + begin, segment(rank) + begin, (end - begin) * sizeof(float));
    };
    passes_(part.end - part.begin, 2, std::ref(copy));
  }
}

std::size_t MemoryCommunicator::slots_bytes() const {
  return static_cast<std::size_t>(shape_.slots) * shape_.float_count * sizeof(float);
}

// Two buffers alternate, so that the root fills one while the takers read the other. They lie in the slots, not in the
// segment: a peer may still be reading this rank's segment of the last reduction.
void MemoryCommunicator::broadcast(std::span<const std::span<std::byte>> parts, int root, bool takes,
                                   Deadline deadline) {
  HOLDFAST_ASSERT(root >= 0 && root < shape_.size);
  const std::size_t piece_bytes = std::min(kPieceBytes, slots_bytes() / 2);
  const auto place = [&](std::size_t piece) { return piece % 2 * piece_bytes; };
  const std::size_t pieces = (bytes_of(parts) + piece_bytes - 1) / piece_bytes;
  PartsCursor cursor(parts);
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    if (shape_.rank == root) cursor.copy_to(memory_.own_blocks->writable().subspan(place(piece), piece_bytes));
    barrier(deadline);
    if (shape_.rank != root && takes) cursor.copy_from({blocks(root) + place(piece), piece_bytes});
  }
  if (pieces > 0) barrier(deadline);
}

void MemoryCommunicator::broadcast_arrays(std::span<const std::span<float>> arrays, int root, bool takes,
                                          Deadline deadline) {
  std::vector<std::span<std::byte>> parts;
  for (const std::span<float> array : arrays) parts.push_back(std::as_writable_bytes(array));
  broadcast(parts, root, takes, deadline);
}

void MemoryCommunicator::gather_all(std::span<const std::byte> own, std::span<std::byte> all, Deadline deadline) {
  HOLDFAST_ASSERT(all.size() == own.size() * static_cast<std::size_t>(shape_.size) && own.size() <= slots_bytes());
  std::memcpy(memory_.own_blocks->writable().data(), own.data(), own.size());
  const auto take = [&] {
    for (int rank = 0; rank < shape_.size; ++rank) {
      std::memcpy(all.data() + static_cast<std::size_t>(rank) * own.size(), blocks(rank), own.size());
    }
  };
  try {
    barrier(deadline);
  } catch (const GenerationEnded&) {
    if (have_all_arrived()) take();
    throw;
  }
  take();
  barrier(deadline);
}

// If so, all have written what they show, although the generation has ended.
bool MemoryCommunicator::have_all_arrived() const {
  for (int rank = 0; rank < shape_.size; ++rank) {
    if (!signal(rank).has_reached(phase_)) return false;
  }
  return true;
}

void MemoryCommunicator::barrier(Deadline deadline) {
  reinterpret_cast<SignalWord*>(memory_.own_arena.writable().data())->count_up();
  ++phase_;
  for (int rank = 0; rank < shape_.size; ++rank) {
    switch (signal(rank).wait_until(phase_, deadline)) {
      case SignalWord::Outcome::reached:
        break;
      case SignalWord::Outcome::cancelled:
        throw GenerationEnded(
            fmt::format("the generation was ended while rank {} waited for rank {}", shape_.rank, rank));
      case SignalWord::Outcome::deadline_passed:
        throw Error(ErrorCode::deadline_exceeded,
                    fmt::format("rank {} reached its deadline while waiting for rank {}, which is slow or hangs; it "
                                "has entered {} of {} barriers",
                                shape_.rank, rank, signal(rank).count(), phase_));
    }
  }
}

void MemoryCommunicator::cancel() {
  reinterpret_cast<SignalWord*>(memory_.own_arena.writable().data())->cancel();
}

}  // namespace holdfast
