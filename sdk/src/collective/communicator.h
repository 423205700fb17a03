#pragma once

// What the ranks of one generation do together. One object per rank; all ranks make the same calls in the same order,
// each from one thread. Every call ends by its deadline: with Error{deadline_exceeded} naming the rank that was waited
// for, or at once with Error{cancelled} when the generation was ended. After either the communicator is of no more use.

#include <cstddef>
#include <span>
#include <vector>

#include "holdfast/base/deadline.h"

namespace holdfast {

// Floats [begin, end) of the reduced block.
struct FloatRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // This rank's slots, for ShardAccumulator. They may be written between two reductions, and no longer once reduce()
  // was called.
  virtual std::vector<std::span<float>> slots() = 0;

  // The shard-order sum of `range`: `covering_slots` names the slot of each covering node of this rank's shards, from
  // left to right. The span covers the whole block, of which only `range` is defined, is the same on every rank, and is
  // valid until the next call.
  virtual std::span<const float> reduce(std::span<const int> covering_slots, FloatRange range, Deadline deadline) = 0;

  // Rank `root`'s bytes replace everyone's. The same number of bytes on each rank.
  virtual void broadcast(std::span<std::byte> bytes, int root, Deadline deadline) = 0;

  virtual void barrier(Deadline deadline) = 0;
};

}  // namespace holdfast
