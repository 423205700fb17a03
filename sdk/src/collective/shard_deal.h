#pragma once

// Which rank computes which shards of a step: contiguous ranges in the order of ranks, at least one shard each. Sums
// are added in the tree's order whoever computed them, so that no bit depends on the deal.

#include <vector>

#include "collective/shard_tree.h"

namespace holdfast {

class ShardDeal {
 public:
  // One shard, for one rank.
  ShardDeal() : ShardDeal(std::vector<int>{1}) {}
  // Of each rank, in rank order. Asserts that there is a rank, and a shard for each.
  explicit ShardDeal(const std::vector<int>& counts);
  // As evenly as contiguous ranges allow. Asserts that there is a shard for each rank.
  static ShardDeal even(int shards, int ranks);

  bool operator==(const ShardDeal&) const = default;

  int ranks() const { return static_cast<int>(boundaries_.size()) - 1; }
  int shards() const { return boundaries_.back(); }
  ShardRange of(int rank) const;
  // Shards of the rank that has the most.
  int most() const;
  // All ranks' covering nodes of the tree over these shards, in rank order.
  std::vector<ShardRange> covering_nodes() const;

 private:
  std::vector<int> boundaries_;  // rank r has the shards from boundaries_[r] up to boundaries_[r + 1]
};

}  // namespace holdfast
