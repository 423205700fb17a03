#pragma once

// The collective operations of one generation: the sum of gradients in the shards' order, broadcasts, barriers. Each
// rank has one object, and all ranks make the same calls in the same order, each from one thread.
//
// Every call ends by its deadline with Error{deadline_exceeded}, which names the rank that it waited for, or at once
// with GenerationEnded. After either of them the communicator must not be used any more.
//
// See docs/decisions/sums.md.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "holdfast/base/deadline.h"
#include "holdfast/base/error.h"
#include "holdfast/core/array_passes.h"

namespace holdfast {

// Floats [begin, end) of the block that is reduced.
struct FloatRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// The part of `range` that rank `rank` of `ranks` adds: as many whole cache lines as each other rank, in rank order, so
// that no two ranks share a line. The last ranks may get fewer or none.
inline constexpr std::size_t kLineFloats = 16;
inline FloatRange segment_of(int rank, int ranks, FloatRange range) {
  const std::size_t even = kLineFloats * static_cast<std::size_t>(ranks);
  const std::size_t floats = (range.end - range.begin + even - 1) / even * kLineFloats;
  const auto boundary = [&](int at) {
    return std::min(range.end, range.begin + static_cast<std::size_t>(at) * floats);
  };
  return {boundary(rank), boundary(rank + 1)};
}

// A block of floats that is added over shards. Gradients lie in the training's memory space. They are followed by a
// tail in the host's memory: losses, metrics and votes, which the host reads after each step. A FloatRange counts
// through both.
struct Slot {
  std::span<float> gradients;
  std::span<float> tail;
};
// The same block, added over all shards.
struct Sums {
  std::span<const float> gradients;
  std::span<const float> tail;
};

// The membership has changed, so this rank's peers may be gone. The rank keeps its state and goes on in the next
// generation.
class GenerationEnded : public Error {
 public:
  explicit GenerationEnded(const std::string& what) : Error(ErrorCode::cancelled, what) {}
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // This rank's slots, for ShardAccumulator. They may be written between two reductions: from the return of one
  // reduce() until the next call of it.
  virtual std::vector<Slot> slots() = 0;

  // From now on the gradients of a block take so many floats, a multiple of kLineFloats and at most as many as those
  // that the communicator was made for. All ranks make the same call after the same barrier or broadcast, and no slot
  // is in use. Slots move. The default changes nothing: a communicator of devices keeps its places.
  virtual void set_gradient_floats(std::size_t floats) { static_cast<void>(floats); }

  // Threads that share the additions of reduce(). It is called by one that may call them. The default does without.
  virtual void set_passes(const ArrayPasses& passes) { static_cast<void>(passes); }

  // The size of a bucket, which is what the ranks add at a time. There is no gain in declaring less than this ready.
  virtual std::size_t bucket_floats() const { return std::numeric_limits<std::size_t>::max(); }
  // Declares gradients of the covering slots ready: once the work that training has queued so far is done, they do not
  // change any more. The communicator may add their buckets while other gradients are still being computed.
  //
  // Each rank may do this or not, whatever the others do. Throws Error{invalid_argument}, if at all, for a float that
  // is declared ready twice between two reductions. Does not wait.
  virtual void mark_ready(std::span<const int> covering_slots, FloatRange range) {
    static_cast<void>(covering_slots), static_cast<void>(range);
  }
  // Lets the sum begin, after all gradients were declared ready. The next call must be reduce() of the same slots and
  // the whole block. May wait for the other ranks to get here.
  virtual void begin_reduce(std::span<const int> covering_slots, Deadline deadline) {
    static_cast<void>(covering_slots), static_cast<void>(deadline);
  }

  // Adds `range` over all ranks in the shard tree's order (shard_tree.h). `covering_slots` has the slot of each
  // covering node of this rank's shards, from left to right. The result spans the whole block, but only `range` of it
  // is defined. It has the same bits on every rank and is valid until the next call.
  virtual Sums reduce(std::span<const int> covering_slots, FloatRange range, Deadline deadline) = 0;

  // Whether all sums of the last reduction are finite (neither NaN nor infinite). The same answer on every rank.
  virtual bool was_finite() const = 0;

  // Copies the bytes of rank `root` to each rank that passes `takes`. A rank that has them already passes false, and
  // must still make the call. Parts have the same sizes on every rank.
  virtual void broadcast(std::span<const std::span<std::byte>> parts, int root, bool takes, Deadline deadline) = 0;
  void broadcast(std::span<std::byte> bytes, int root, bool takes, Deadline deadline) {
    broadcast(std::span(&bytes, 1), root, takes, deadline);
  }

  // The same for arrays in the training's memory space.
  virtual void broadcast_arrays(std::span<const std::span<float>> arrays, int root, bool takes, Deadline deadline) = 0;

  // Fills `all` with every rank's `own` bytes, in rank order; `all` has size() times the bytes of `own`. If the call
  // throws GenerationEnded on one rank but returned on another rank of the same host, `all` is complete on both. Over
  // hosts nobody can promise that: the last message to a host may be lost when the others have returned. There, `all`
  // is complete on a rank that was cut off, or unchanged. A rank that has it and survives tells the others in the next
  // generation.
  virtual void gather_all(std::span<const std::byte> own, std::span<std::byte> all, Deadline deadline) = 0;

  virtual void barrier(Deadline deadline) = 0;

  // Whether the next call would throw GenerationEnded. A long computation may ask, so as to end early. Any thread.
  virtual bool is_cancelled() const = 0;
};

}  // namespace holdfast
