// When another assignment of shards is worth its pause: a straggler, enough gain, and enough time since the last one.

#include "decide/shard_assigner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

struct Rank {
  int shards = 3;
  std::chrono::nanoseconds round = 10ms;
  bool is_straggler = false;
  bool is_settled = true;
  int at_once = 1;
};

const Moment kFirstAssignment{};

std::optional<ShardAssigner::Proposal> better_assignment(const ShardAssigner& assigner, const std::vector<Rank>& ranks,
                                                         std::int64_t step = 1000, Moment now = kFirstAssignment + 1h) {
  std::vector<Load> loads;
  std::vector<Stragglers::Speed> speeds;
  for (const Rank& rank : ranks) {
    loads.push_back({.member = static_cast<int>(loads.size()), .shards = rank.shards, .at_once = rank.at_once});
    speeds.push_back({.member = loads.back().member,
                      .time_per_round = rank.round,
                      .is_straggler = rank.is_straggler,
                      .is_settled = rank.is_settled});
  }
  return assigner.better_assignment(loads, speeds, step, now);
}

const std::vector<Rank> kOneIsSlow{{.round = 10ms}, {.round = 20ms, .is_straggler = true}};

TEST(ShardAssigner, GivesTheSlowRankFewerShardsAndSaysWhy) {
  const auto assignment = better_assignment(ShardAssigner({}), kOneIsSlow);

  ASSERT_TRUE(assignment.has_value());
  EXPECT_THAT(assignment->shards, ElementsAre(4, 2));
  EXPECT_THAT(assignment->round_times, ElementsAre(10ms, 20ms));
  EXPECT_THAT(assignment->why,
              HasSubstr("with 4, 2 shards instead of 3, 3, the slowest replica computes for 40 ms instead of 60 ms"));
}

TEST(ShardAssigner, KeepsTheAssignmentWithoutAStraggler) {
  EXPECT_FALSE(better_assignment(ShardAssigner({}), {{.round = 10ms}, {.round = 14ms}}).has_value());
}

TEST(ShardAssigner, KeepsTheAssignmentWhenTheGainIsSmall) {
  const std::vector<Rank> ranks{{.shards = 1, .round = 10ms}, {.shards = 1, .round = 100ms, .is_straggler = true}};
  EXPECT_FALSE(better_assignment(ShardAssigner({}), ranks).has_value());

  const std::vector<Rank> assigned{{.shards = 13, .round = 10ms}, {.shards = 7, .round = 19ms, .is_straggler = true}};
  EXPECT_FALSE(better_assignment(ShardAssigner({}), assigned).has_value());
}

TEST(ShardAssigner, KeepsTheAssignmentWhenFewerShardsTakeAsManyRounds) {
  const std::vector<Rank> ranks{{.at_once = 3}, {.round = 20ms, .is_straggler = true, .at_once = 3}};

  EXPECT_FALSE(better_assignment(ShardAssigner({}), ranks).has_value());
}

TEST(ShardAssigner, WaitsUntilEveryWindowIsFull) {
  std::vector<Rank> ranks = kOneIsSlow;
  ranks[0].is_settled = false;

  EXPECT_FALSE(better_assignment(ShardAssigner({}), ranks).has_value());
}

TEST(ShardAssigner, AssignsEvenlyAgainOnceTheSlowRankIsQuick) {
  const auto assignment = better_assignment(ShardAssigner({}), {{.shards = 4}, {.shards = 2}});

  ASSERT_TRUE(assignment.has_value());
  EXPECT_THAT(assignment->shards, ElementsAre(3, 3));
}

TEST(ShardAssigner, WaitsAfterAnAssignment) {
  ShardAssigner assigner({.steps_between = 64, .time_between = 60s});
  assigner.assigned(100, kFirstAssignment);

  EXPECT_FALSE(better_assignment(assigner, kOneIsSlow, 163, kFirstAssignment + 59s).has_value());
  EXPECT_TRUE(better_assignment(assigner, kOneIsSlow, 164, kFirstAssignment + 59s).has_value());
  EXPECT_TRUE(better_assignment(assigner, kOneIsSlow, 101, kFirstAssignment + 60s).has_value());
}

TEST(ShardAssigner, LeavesASingleRankAlone) {
  EXPECT_FALSE(better_assignment(ShardAssigner({}), {{.is_straggler = true}}).has_value());
}

}  // namespace
}  // namespace holdfast::recovery
