#pragma once

// Adds the shard sums that one rank computes, in the tree's order, while worker threads finish them in any order. Each
// shard is computed into a slot (a block of floats); as soon as both children of a node are complete, the right one is
// added to the left one and its slot is free again. What remains are the covering nodes of the rank's shards.

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
  // How many slots are needed for `local` shards when up to `workers` are computed at once.
  static int slots_needed(int local, int workers);

  // `slots` (all of one size), whose gradients lie in `memory`, outlive the accumulator.
  ShardAccumulator(ShardTree tree, ShardRange local, std::vector<Slot> slots, MemorySpace& memory = host_memory());

  // Begins a step: all slots are free again. Not while a shard is being computed.
  void reset();

  // The slot to compute `shard` into; its content is undefined. Any thread.
  Slot acquire(int shard);
  // Says that `range` of the shard's slot is written, and adds there what can be added. The same range for all shards
  // of a step. Any thread.
  void complete(int shard, FloatRange range);

  // Adds there at once what complete() would add of `range`, which so must not be part of complete()'s, and returns
  // what covering_slots() will be. For the last shard of the rank, while no other one is computed.
  std::vector<int> add_ahead(int shard, FloatRange range) const;

  // After all shards of the rank are complete: the slot of each covering node, from left to right.
  std::vector<int> covering_slots() const;

 private:
  struct Node {
    ShardRange range;
    int slot;
  };

  using Nodes = std::map<int, Node>;  // by first shard
  // The two children of `node`'s parent, the left one first, where the other one is complete, too; it is taken out of
  // `complete`.
  std::optional<std::pair<Node, Node>> take_pair(const Node& node, Nodes& complete) const;
  static Node parent_of(const std::pair<Node, Node>& children);
  std::vector<int> covering_slots_in(const Nodes& complete) const;
  void add(const std::pair<Node, Node>& children, FloatRange range) const;

  const ShardTree tree_;
  const ShardRange local_;
  const std::vector<Slot> slots_;
  MemorySpace& memory_;

  mutable std::mutex mutex_;
  std::vector<int> free_slots_;  // guarded by mutex_
  std::map<int, int> running_;   // shard -> slot; guarded by mutex_
  Nodes complete_nodes_;         // that nobody is adding; guarded by mutex_
};

}  // namespace holdfast
