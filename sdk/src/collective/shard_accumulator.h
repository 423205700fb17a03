#pragma once

// Adds the sums of one rank's shards in the tree's order, while worker threads finish the shards in any order.
//
// Each shard is computed into a slot, which is a block of floats. As soon as both children of a node are complete, the
// right one is added to the left one, and the slot of the right one is free again. In the end the covering nodes of the
// rank's shards remain. Communicator::reduce() adds those of all ranks. See docs/decisions/sums.md.

#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "collective/communicator.h"
#include "collective/shard_tree.h"
#include "holdfast/core/memory_space.h"

namespace holdfast {

class ShardAccumulator {
 public:
  // How many slots suffice for `local` shards when up to `workers` of them are computed at once.
  static int slots_needed(int local, int workers);

  // `local` are the rank's shards. `slots` have one size, their gradients lie in `memory`, and both must outlive the
  // accumulator.
  ShardAccumulator(ShardTree tree, ShardRange local, std::vector<Slot> slots, MemorySpace& memory = host_memory());

  // Begins a step: all slots are free again. Must not be called while a shard is being computed.
  void reset();

  // Takes a free slot to compute `shard` into. Its content is undefined. Asserts that a slot is free. Any thread.
  Slot acquire(int shard);
  // Declares `range` of the shard's slot computed, and adds that range of all nodes that are complete now, except for
  // the parts `left_out`, which ascend and lie in the gradients. Both are the same for all shards of a step, and
  // `left_out` outlives it. What the shard that ends last completes is left to finish(). Any thread.
  void complete(int shard, FloatRange range, std::span<const FloatRange> left_out = {});
  // Adds what is left when all shards of the rank are complete, on the threads of `passes`. Returns whether the
  // gradients of the last sum are finite, but for what was left out; empty if nothing was left, or if they are on a
  // device.
  std::optional<bool> finish(const ArrayPasses& passes);

  // Adds `range` of the shard's slot ahead of complete(), whose own range must not include it. Only for the last shard
  // of the rank, while no other one is being computed. Returns what covering_slots() will return, so that the sum over
  // ranks can begin with this range while the rest of the shard is still being computed.
  std::vector<int> add_ahead(int shard, FloatRange range) const;

  // The slot of each covering node, from left to right. Only after finish().
  std::vector<int> covering_slots() const;
  // The same with the shards that are added in each.
  struct Sum {
    ShardRange shards;
    Slot slot;
  };
  std::vector<Sum> sums() const;

 private:
  struct Node {
    ShardRange range;
    int slot;
  };

  struct LastShard {
    Node node;
    FloatRange range;
    std::span<const FloatRange> left_out;
  };

  using Nodes = std::map<int, Node>;  // by first shard
  // If the sibling of `node` is complete too, takes it out of `complete` and returns both, the left one first.
  std::optional<std::pair<Node, Node>> take_pair(const Node& node, Nodes& complete) const;
  static Node parent_of(const std::pair<Node, Node>& children);
  std::vector<int> covering_slots_in(const Nodes& complete) const;
  std::optional<bool> add(const std::pair<Node, Node>& children, FloatRange range, std::span<const FloatRange> left_out,
                          const ArrayPasses& passes) const;

  const ShardTree tree_;
  const ShardRange local_;
  const std::vector<Slot> slots_;
  MemorySpace& memory_;

  mutable std::mutex mutex_;
  std::vector<int> free_slots_;    // guarded by mutex_
  std::map<int, int> running_;     // shard -> slot; guarded by mutex_
  Nodes complete_nodes_;           // those that no thread is adding right now; guarded by mutex_
  int acquired_ = 0;               // shards of this step; guarded by mutex_
  std::optional<LastShard> last_;  // between its complete() and finish(); guarded by mutex_
};

}  // namespace holdfast
