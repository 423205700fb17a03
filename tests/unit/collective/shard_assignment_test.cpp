#include "collective/shard_assignment.h"

#include <gtest/gtest.h>

namespace holdfast {

TEST(ShardAssignment, GivesEachRankItsCountInTheOrderOfRanks) {
  const ShardAssignment assignment(std::vector<int>{4, 1, 2});

  EXPECT_EQ(assignment.ranks(), 3);
  EXPECT_EQ(assignment.shards(), 7);
  EXPECT_EQ(assignment.most(), 4);
  EXPECT_EQ(assignment.of(0), (ShardRange{0, 4}));
  EXPECT_EQ(assignment.of(1), (ShardRange{4, 5}));
  EXPECT_EQ(assignment.of(2), (ShardRange{5, 7}));
}

TEST(ShardAssignment, AssignsEveryShardOnceAndEvenly) {
  for (int shards = 1; shards <= 40; ++shards) {
    for (int replicas = 1; replicas <= shards; ++replicas) {
      const ShardAssignment assignment = ShardAssignment::even(shards, replicas);
      int next = 0;
      for (int rank = 0; rank < replicas; ++rank) {
        EXPECT_EQ(assignment.of(rank).begin, next);
        EXPECT_GE(assignment.of(rank).count(), shards / replicas);
        EXPECT_LE(assignment.of(rank).count(), shards / replicas + 1);
        next = assignment.of(rank).end;
      }
      EXPECT_EQ(next, shards);
    }
  }
}

TEST(ShardAssignment, GivesEachRankThePartsOfItsShards) {
  EXPECT_EQ(ShardAssignment(std::vector<int>{4, 1, 2}).with_parts(3), ShardAssignment(std::vector<int>{12, 3, 6}));
}

TEST(ShardAssignment, CoversTheWholeTreeFromLeftToRight) {
  const std::vector<ShardRange> nodes = ShardAssignment(std::vector<int>{3, 5}).covering_nodes();

  EXPECT_EQ(nodes, (std::vector<ShardRange>{{0, 2}, {2, 3}, {3, 4}, {4, 8}}));
}

}  // namespace holdfast
