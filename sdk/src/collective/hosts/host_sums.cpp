#include "collective/hosts/host_sums.h"

#include "holdfast/base/error.h"

namespace holdfast {

ShardRange shards_of_host(const ShardAssignment& assignment, const HostLayout& layout, int host) {
  return {assignment.of(layout.first_rank(host)).begin, assignment.of(layout.first_rank(host + 1) - 1).end};
}

HostSums::HostSums(const ShardAssignment& assignment, const HostLayout& layout, int own_host) {
  HOLDFAST_ASSERT(assignment.ranks() == layout.ranks());
  const ShardTree tree(assignment.shards());
  std::vector<ShardRange> leaves;  // of the own host
  for (int rank = layout.first_rank(own_host); rank < layout.first_rank(own_host + 1); ++rank) {
    const std::vector<ShardRange> of_rank = tree.covering_nodes(assignment.of(rank));
    leaves.insert(leaves.end(), of_rank.begin(), of_rank.end());
  }
  std::vector<ShardRange> all;  // the leaves of the whole sum
  for (int host = 0; host < layout.hosts(); ++host) {
    const std::vector<ShardRange> nodes = tree.covering_nodes(shards_of_host(assignment, layout, host));
    partials_of_host.push_back(nodes.size());
    const std::vector<ShardRange>& summands = host == own_host ? leaves : nodes;
    all.insert(all.end(), summands.begin(), summands.end());
    if (host != own_host) continue;
    std::size_t next_leaf = 0;
    for (const ShardRange& node : nodes) {
      // A covering node of a rank lies within one of its host: the host's are the largest.
      std::vector<ShardRange> within;
      const std::size_t first = next_leaf;
      while (next_leaf < leaves.size() && node.contains(leaves[next_leaf])) within.push_back(leaves[next_leaf++]);
      partials.push_back({.program = sum_program(node, within), .first_leaf = first, .leaves = within.size()});
    }
  }
  total = sum_program(tree, all);
}

}  // namespace holdfast
