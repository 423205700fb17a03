#pragma once

// Which rank computes which shards of a step: contiguous ranges in rank order, at least one shard for each rank. The
// shards' sums are added in the tree's order (shard_tree.h) on any assignment, so the assignment never changes a bit.
//
// An assignment belongs to a generation and does not change within it. A rank with another assignment than its peers
// would leave out a shard or add it twice. See docs/decisions/shard-assignment.md.

#include <vector>

#include "collective/shard_tree.h"

namespace holdfast {

class ShardAssignment {
 public:
  // One shard, for one rank.
  ShardAssignment() : ShardAssignment(std::vector<int>{1}) {}
  // counts[r] is the number of shards of rank r. Asserts that there is at least one rank, and a shard for each.
  explicit ShardAssignment(const std::vector<int>& counts);
  // Ranges whose sizes differ by one shard at most. Asserts that there is a shard for each rank.
  static ShardAssignment even(int shards, int ranks);

  // The same ranks with `times` shards in place of each.
  ShardAssignment with_parts(int times) const;

  bool operator==(const ShardAssignment&) const = default;

  int ranks() const { return static_cast<int>(boundaries_.size()) - 1; }
  int shards() const { return boundaries_.back(); }
  ShardRange of(int rank) const;
  // How many shards the rank with the most has.
  int most() const;
  // The covering nodes of all ranks in the tree over these shards, in rank order.
  std::vector<ShardRange> covering_nodes() const;

 private:
  std::vector<int> boundaries_;  // rank r has the shards from boundaries_[r] up to boundaries_[r + 1]
};

}  // namespace holdfast
