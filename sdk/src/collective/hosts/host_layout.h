#pragma once

// Which ranks of a generation are on which host: contiguous ranges in host order, at least one rank on each.
//
// Local rank i of each host is connected with local rank i of every other host. These ranks together are lane i. There
// are as many lanes as the host with the fewest ranks has ranks, so each host is on every lane.

#include <vector>

namespace holdfast {

class HostLayout {
 public:
  // One host, with one rank.
  HostLayout() : HostLayout(std::vector<int>{1}) {}
  // counts[h] is the number of ranks of host h. Throws Error{invalid_argument} unless each host has a rank.
  explicit HostLayout(const std::vector<int>& counts);

  bool operator==(const HostLayout&) const = default;

  int hosts() const { return static_cast<int>(boundaries_.size()) - 1; }
  int ranks() const { return boundaries_.back(); }
  // Asserts that the layout has such a rank.
  int host_of(int rank) const;
  int first_rank(int host) const { return boundaries_[static_cast<std::size_t>(host)]; }
  int ranks_of(int host) const { return first_rank(host + 1) - first_rank(host); }
  int local_rank(int rank) const { return rank - first_rank(host_of(rank)); }
  int lanes() const;
  // The rank of a host that is on the lane.
  int rank_on_lane(int lane, int host) const { return first_rank(host) + lane; }

 private:
  std::vector<int> boundaries_;  // host h has the ranks from boundaries_[h] up to boundaries_[h + 1]
};

}  // namespace holdfast
