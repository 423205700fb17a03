// The shard-order sum in shared memory. A reduction has two barriers. After the first, all slots are written, so each
// rank adds its segment. After the second, all segments are written, so each rank copies them. An error on any rank
// therefore reaches its peers as a cancelled wait or as a deadline, never as a wrong sum.
//
// The order of the additions is add_in_order(), which works on blocks of floats so that the tree's temporaries stay in
// the caches. See docs/decisions/sums.md.

#include "collective/memory/memory_communicator.h"

#include <atomic>
#include <cstring>
#include <functional>
#include <utility>

#include "collective/memory/ordered_add.h"
#include "collective/memory/parts_cursor.h"
#include "holdfast/base/error.h"
#include "holdfast/core/memory_space.h"

namespace holdfast {

MemoryCommunicator::MemoryCommunicator(const CommunicatorShape& shape, Memory memory)
    : program_(sum_program(ShardTree(shape.assignment.shards()), shape.assignment.covering_nodes())),
      shared_(shape, {.first = 0, .count = shape.size}, std::move(memory)) {}

Sums MemoryCommunicator::reduce(std::span<const int> covering_slots, FloatRange range, Deadline deadline) {
  const std::size_t floats = shared_.result().size();
  HOLDFAST_ASSERT(range.begin <= range.end && range.end <= floats);
  if (size() == 1) {
    // Alone, the sum is there already: nothing is copied, and no barrier is entered.
    HOLDFAST_ASSERT(covering_slots.size() == 1);
    if (is_cancelled()) throw GenerationEnded("the generation was ended during an all-reduce");
    const float* sum = shared_.slot(0, static_cast<std::uint32_t>(covering_slots[0]));
    std::atomic<bool> is_finite = true;
    const auto look = [&](std::size_t begin, std::size_t end) {
      if (!host_memory().is_finite({sum + range.begin + begin, end - begin})) is_finite = false;
    };
    passes_(range.end - range.begin, 1, std::ref(look));
    was_finite_ = is_finite;
    return shared_.parted({sum, floats});
  }
  shared_.show_covering_slots(covering_slots);
  barrier(deadline);
  shared_.show_finite(add_segment(segment_of(rank(), size(), range)));
  // After this barrier no rank reads slots any more, so training may write them. Segments are written again only after
  // the first barrier of the next reduction, when all ranks have copied them.
  barrier(deadline);
  shared_.gather(range, size(), passes_);
  was_finite_ = shared_.are_finite(size());
  return shared_.parted(shared_.result());
}

// Adds this rank's part of the sum. Returns whether it is finite.
bool MemoryCommunicator::add_segment(FloatRange part) {
  const std::vector<const float*> leaves = shared_.leaves();
  float* const sum = shared_.own_segment();
  std::atomic<bool> is_finite = true;
  // Each float is the sum of those at its place alone, so ranges may be cut anywhere.
  const auto add_range = [&](std::size_t begin, std::size_t end) {
    const FloatRange range = {part.begin + begin, part.begin + end};
    if (!add_in_order(program_, leaves, range, sum + begin)) is_finite = false;
  };
  passes_(part.end - part.begin, leaves.size() + 1, std::ref(add_range));
  return is_finite;
}

// The root fills one piece while the takers read the other.
void MemoryCommunicator::broadcast(std::span<const std::span<std::byte>> parts, int root, bool takes,
                                   Deadline deadline) {
  HOLDFAST_ASSERT(root >= 0 && root < size());
  const std::size_t piece_bytes = shared_.piece_bytes();
  const std::size_t pieces = (bytes_of(parts) + piece_bytes - 1) / piece_bytes;
  PartsCursor cursor(parts);
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    if (rank() == root) cursor.copy_to(shared_.own_piece(piece));
    barrier(deadline);
    if (rank() != root && takes) cursor.copy_from(shared_.piece(root, piece));
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
  HOLDFAST_ASSERT(all.size() == own.size() * static_cast<std::size_t>(size()) && own.size() <= shared_.slots_bytes());
  std::memcpy(shared_.own_bytes().data(), own.data(), own.size());
  const auto take = [&] {
    for (int rank = 0; rank < size(); ++rank) {
      std::memcpy(all.data() + static_cast<std::size_t>(rank) * own.size(), shared_.bytes(rank).data(), own.size());
    }
  };
  try {
    barrier(deadline);
  } catch (const GenerationEnded&) {
    // All have written what they show, although the generation has ended.
    if (shared_.have_all_arrived()) take();
    throw;
  }
  take();
  barrier(deadline);
}

}  // namespace holdfast
