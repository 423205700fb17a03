#include "collective/hosts/host_layout.h"

#include <gtest/gtest.h>

#include "collective/shard_assignment.h"
#include "holdfast/base/error.h"

namespace holdfast {

TEST(HostLayout, KnowsWhichRanksAreWhere) {
  const HostLayout layout({2, 1, 3});

  EXPECT_EQ(layout.hosts(), 3);
  EXPECT_EQ(layout.ranks(), 6);
  EXPECT_EQ(layout.ranks_of(2), 3);
  EXPECT_EQ(layout.first_rank(2), 3);
  EXPECT_EQ(layout.host_of(0), 0);
  EXPECT_EQ(layout.host_of(1), 0);
  EXPECT_EQ(layout.host_of(2), 1);
  EXPECT_EQ(layout.host_of(5), 2);
  EXPECT_EQ(layout.local_rank(5), 2);
}

TEST(HostLayout, HasALaneForEachRankOfTheSmallestHost) {
  EXPECT_EQ(HostLayout({3, 2, 4}).lanes(), 2);
  EXPECT_EQ(HostLayout({3, 2, 4}).rank_on_lane(1, 2), 6);
  EXPECT_EQ(HostLayout({5}).lanes(), 5);
}

TEST(HostLayout, RefusesAHostWithoutRanks) {
  EXPECT_THROW(HostLayout(std::vector<int>{}), Error);
  EXPECT_THROW(HostLayout({1, 0}), Error);
}

// So hosts need no assignment of their own: ranks that are numbered host by host get it.
TEST(HostLayout, GetsEvenSharesOfHostsFromTheEvenAssignmentOfRanks) {
  for (int hosts = 1; hosts <= 8; ++hosts) {
    for (int each = 1; each <= 8; ++each) {
      const HostLayout layout(std::vector<int>(static_cast<std::size_t>(hosts), each));
      for (int shards = hosts * each; shards <= 128; ++shards) {
        const ShardAssignment by_rank = ShardAssignment::even(shards, layout.ranks());
        const ShardAssignment by_host = ShardAssignment::even(shards, hosts);
        for (int host = 0; host < hosts; ++host) {
          ASSERT_EQ(by_rank.of(layout.first_rank(host)).begin, by_host.of(host).begin);
        }
      }
    }
  }
}

}  // namespace holdfast
