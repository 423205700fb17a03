// Ranks have contiguous shards, so boundaries say everything. Contiguous ranges have few covering nodes, which are what
// a rank sends.

#include "collective/shard_assignment.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "holdfast/base/error.h"

namespace holdfast {

ShardAssignment::ShardAssignment(const std::vector<int>& counts) : boundaries_{0} {
  HOLDFAST_ASSERT(!counts.empty());
  for (const int count : counts) {
    HOLDFAST_ASSERT(count > 0);
    boundaries_.push_back(boundaries_.back() + count);
  }
}

ShardAssignment ShardAssignment::even(int shards, int ranks) {
  std::vector<int> counts;
  // In 64 bits: the product may be larger than an int.
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    counts.push_back(static_cast<int>(shards * (rank + 1) / ranks - shards * rank / ranks));
  }
  return ShardAssignment(counts);
}

ShardAssignment ShardAssignment::with_parts(int times) const {
  HOLDFAST_ASSERT(times > 0);
  ShardAssignment parts = *this;
  for (int& boundary : parts.boundaries_) boundary *= times;
  return parts;
}

ShardRange ShardAssignment::of(int rank) const {
  HOLDFAST_ASSERT(rank >= 0 && rank < ranks());
  const auto index = static_cast<std::size_t>(rank);
  return {boundaries_[index], boundaries_[index + 1]};
}

int ShardAssignment::most() const {
  int most = 0;
  for (int rank = 0; rank < ranks(); ++rank) most = std::max(most, of(rank).count());
  return most;
}

std::vector<ShardRange> ShardAssignment::covering_nodes() const {
  // Rank by rank, which is the order of the sum program's leaves.
  std::vector<ShardRange> nodes;
  for (int rank = 0; rank < ranks(); ++rank) {
    const std::vector<ShardRange> of_rank = ShardTree(shards()).covering_nodes(of(rank));
    nodes.insert(nodes.end(), of_rank.begin(), of_rank.end());
  }
  return nodes;
}

}  // namespace holdfast
