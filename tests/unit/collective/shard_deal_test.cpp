#include "collective/shard_deal.h"

#include <gtest/gtest.h>

namespace holdfast {

TEST(ShardDeal, GivesEachRankItsCountInTheOrderOfRanks) {
  const ShardDeal deal(std::vector<int>{4, 1, 2});

  EXPECT_EQ(deal.ranks(), 3);
  EXPECT_EQ(deal.shards(), 7);
  EXPECT_EQ(deal.most(), 4);
  EXPECT_EQ(deal.of(0), (ShardRange{0, 4}));
  EXPECT_EQ(deal.of(1), (ShardRange{4, 5}));
  EXPECT_EQ(deal.of(2), (ShardRange{5, 7}));
}

TEST(ShardDeal, AssignsEveryShardOnceAndEvenly) {
  for (int shards = 1; shards <= 40; ++shards) {
    for (int replicas = 1; replicas <= shards; ++replicas) {
      const ShardDeal deal = ShardDeal::even(shards, replicas);
      int next = 0;
      for (int rank = 0; rank < replicas; ++rank) {
        EXPECT_EQ(deal.of(rank).begin, next);
        EXPECT_GE(deal.of(rank).count(), shards / replicas);
        EXPECT_LE(deal.of(rank).count(), shards / replicas + 1);
        next = deal.of(rank).end;
      }
      EXPECT_EQ(next, shards);
    }
  }
}

TEST(ShardDeal, CoversTheWholeTreeFromLeftToRight) {
  const std::vector<ShardRange> nodes = ShardDeal(std::vector<int>{3, 5}).covering_nodes();

  EXPECT_EQ(nodes, (std::vector<ShardRange>{{0, 2}, {2, 3}, {3, 4}, {4, 8}}));
}

}  // namespace holdfast
