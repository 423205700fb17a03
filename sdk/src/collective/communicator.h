#pragma once

// What the ranks of one generation do together. One object per rank; all ranks make the same calls in the same order,
// each from one thread. Every call ends by its deadline: with Error{deadline_exceeded} naming the rank that was waited
// for, or at once with GenerationEnded. After either the communicator is of no more use.

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "holdfast/base/deadline.h"
#include "holdfast/base/error.h"

namespace holdfast {

// Floats [begin, end) of the reduced block.
struct FloatRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// A block of floats that is added over shards: gradients in the memory space of the training, and behind them a tail in
// the host's memory. A FloatRange counts through both.
struct Slot {
  std::span<float> gradients;
  std::span<float> tail;
};
struct Sums {
  std::span<const float> gradients;
  std::span<const float> tail;
};

// This rank's peers are no longer what they were: it keeps its state, and goes on in the next generation.
class GenerationEnded : public Error {
 public:
  explicit GenerationEnded(const std::string& what) : Error(ErrorCode::cancelled, what) {}
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // This rank's slots, for ShardAccumulator. They may be written between two reductions, and no longer once reduce()
  // was called.
  virtual std::vector<Slot> slots() = 0;

  // Floats that are added at a time: less makes no sense to be handed over.
  virtual std::size_t piece_floats() const { return std::numeric_limits<std::size_t>::max(); }
  // Gradients of the covering slots that will not change any more once all that training has queued so far is done: a
  // communicator may add them while others are still being computed. Each float once between two reductions, or it may
  // throw Error{invalid_argument}; whether a rank does this at all is its own affair. Waits for nobody.
  virtual void hand_over(std::span<const int> covering_slots, FloatRange range) {
    static_cast<void>(covering_slots), static_cast<void>(range);
  }
  // Once all gradients are handed over: the sum of them may begin. The next call is reduce(), of the same slots and of
  // all their floats. May wait for the other ranks to get so far.
  virtual void begin_reduce(std::span<const int> covering_slots, Deadline deadline) {
    static_cast<void>(covering_slots), static_cast<void>(deadline);
  }

  // The shard-order sum of `range`: `covering_slots` names the slot of each covering node of this rank's shards, from
  // left to right. The sums cover the whole block, of which only `range` is defined, are the same on every rank, and
  // are valid until the next call.
  virtual Sums reduce(std::span<const int> covering_slots, FloatRange range, Deadline deadline) = 0;

  // Whether the whole range of the last reduction is neither NaN nor infinite; the same answer on every rank.
  virtual bool was_finite() const = 0;

  // Rank `root`'s bytes replace those of everyone who takes them. Parts of the same sizes on each rank, and the same
  // calls, whether a rank takes them or knows them already.
  virtual void broadcast(std::span<const std::span<std::byte>> parts, int root, bool takes, Deadline deadline) = 0;
  void broadcast(std::span<std::byte> bytes, int root, bool takes, Deadline deadline) {
    broadcast(std::span(&bytes, 1), root, takes, deadline);
  }

  // The same of arrays in the memory space of the training.
  virtual void broadcast_arrays(std::span<const std::span<float>> arrays, int root, bool takes, Deadline deadline) = 0;

  // Every rank's bytes, in the order of ranks; `all` has room for as many times `own`. Where some rank got them, every
  // rank whose call ends with GenerationEnded has them in `all`, too; where none did, `all` may be as it was.
  virtual void gather_all(std::span<const std::byte> own, std::span<std::byte> all, Deadline deadline) = 0;

  virtual void barrier(Deadline deadline) = 0;

  // Whether the next call would end with GenerationEnded: who computes for long may look, and leave. Any thread.
  virtual bool is_cancelled() const = 0;
};

}  // namespace holdfast
