// When another assignment of shards is worth its pause: a straggler, enough gain, and enough time since the last one.

#include "decide/shard_dealer.h"

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

const Moment kFirstDeal{};

std::optional<ShardDealer::Deal> better_deal(const ShardDealer& dealer, const std::vector<Rank>& ranks,
                                             std::int64_t step = 1000, Moment now = kFirstDeal + 1h) {
  std::vector<Load> loads;
  std::vector<Stragglers::Speed> speeds;
  for (const Rank& rank : ranks) {
    loads.push_back({.member = static_cast<int>(loads.size()), .shards = rank.shards, .at_once = rank.at_once});
    speeds.push_back({.member = loads.back().member,
                      .time_per_round = rank.round,
                      .is_straggler = rank.is_straggler,
                      .is_settled = rank.is_settled});
  }
  return dealer.better_deal(loads, speeds, step, now);
}

const std::vector<Rank> kOneIsSlow{{.round = 10ms}, {.round = 20ms, .is_straggler = true}};

TEST(ShardDealer, GivesTheSlowRankFewerShardsAndSaysWhy) {
  const auto deal = better_deal(ShardDealer({}), kOneIsSlow);

  ASSERT_TRUE(deal.has_value());
  EXPECT_THAT(deal->shards, ElementsAre(4, 2));
  EXPECT_THAT(deal->round_times, ElementsAre(10ms, 20ms));
  EXPECT_THAT(deal->why,
              HasSubstr("with 4, 2 shards instead of 3, 3, the slowest replica computes for 40 ms instead of 60 ms"));
}

TEST(ShardDealer, KeepsTheAssignmentWithoutAStraggler) {
  EXPECT_FALSE(better_deal(ShardDealer({}), {{.round = 10ms}, {.round = 14ms}}).has_value());
}

TEST(ShardDealer, KeepsTheAssignmentWhenTheGainIsSmall) {
  const std::vector<Rank> ranks{{.shards = 1, .round = 10ms}, {.shards = 1, .round = 100ms, .is_straggler = true}};
  EXPECT_FALSE(better_deal(ShardDealer({}), ranks).has_value());

  const std::vector<Rank> dealt{{.shards = 13, .round = 10ms}, {.shards = 7, .round = 19ms, .is_straggler = true}};
  EXPECT_FALSE(better_deal(ShardDealer({}), dealt).has_value());
}

TEST(ShardDealer, KeepsTheAssignmentWhenFewerShardsTakeAsManyRounds) {
  const std::vector<Rank> ranks{{.at_once = 3}, {.round = 20ms, .is_straggler = true, .at_once = 3}};

  EXPECT_FALSE(better_deal(ShardDealer({}), ranks).has_value());
}

TEST(ShardDealer, WaitsUntilEveryWindowIsFull) {
  std::vector<Rank> ranks = kOneIsSlow;
  ranks[0].is_settled = false;

  EXPECT_FALSE(better_deal(ShardDealer({}), ranks).has_value());
}

TEST(ShardDealer, AssignsEvenlyAgainOnceTheSlowRankIsQuick) {
  const auto deal = better_deal(ShardDealer({}), {{.shards = 4}, {.shards = 2}});

  ASSERT_TRUE(deal.has_value());
  EXPECT_THAT(deal->shards, ElementsAre(3, 3));
}

TEST(ShardDealer, WaitsAfterAnAssignment) {
  ShardDealer dealer({.steps_between = 64, .time_between = 60s});
  dealer.dealt(100, kFirstDeal);

  EXPECT_FALSE(better_deal(dealer, kOneIsSlow, 163, kFirstDeal + 59s).has_value());
  EXPECT_TRUE(better_deal(dealer, kOneIsSlow, 164, kFirstDeal + 59s).has_value());
  EXPECT_TRUE(better_deal(dealer, kOneIsSlow, 101, kFirstDeal + 60s).has_value());
}

TEST(ShardDealer, LeavesASingleRankAlone) {
  EXPECT_FALSE(better_deal(ShardDealer({}), {{.is_straggler = true}}).has_value());
}

}  // namespace
}  // namespace holdfast::recovery
