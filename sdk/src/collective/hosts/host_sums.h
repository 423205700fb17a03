#pragma once

// Which sums the hosts of a generation exchange. A host adds the shards of its own ranks up to the largest nodes of the
// tree that they make up: its partial sums. The partial sums of all hosts, added on, make the whole. Each addition is
// one of the tree over all shards, so the bits are those of a single host. See docs/decisions/hosts.md.

#include <cstddef>
#include <vector>

#include "collective/hosts/host_layout.h"
#include "collective/shard_assignment.h"
#include "collective/shard_tree.h"

namespace holdfast {

// The shards of all ranks of a host.
ShardRange shards_of_host(const ShardAssignment& assignment, const HostLayout& layout, int host);

// The same for all ranks of a generation but `total` and `partial`, which are those of one host.
struct HostSums {
  HostSums(const ShardAssignment& assignment, const HostLayout& layout, int own_host);

  // How a partial sum of the own host is made from leaves, the covering nodes of the host's ranks in rank order.
  struct Partial {
    std::vector<SumInstruction> program;
    std::size_t first_leaf = 0;
    std::size_t leaves = 0;
  };

  std::vector<std::size_t> partials_of_host;  // how many partial sums each host has
  std::vector<Partial> partials;              // of the own host, from left to right
  // The whole sum, from the partial sums of the hosts before the own one, the leaves of the own one, and the partial
  // sums of the hosts after it.
  std::vector<SumInstruction> total;
};

}  // namespace holdfast
