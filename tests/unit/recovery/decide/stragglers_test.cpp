// Stragglers among members whose times the test gives, and assignments of shards compared with all possible ones.

#include "decide/stragglers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::ElementsAre;

constexpr std::size_t kWindow = 32;

// Ends steps of all members together. A member that is done early waits for the others.
class StragglersTest : public testing::Test {
 protected:
  struct Member {
    std::chrono::nanoseconds per_shard = 10ms;
    int shards = 3;
  };

  bool train(std::size_t steps, const std::vector<Member>& members) {
    bool has_changed = false;
    for (std::size_t count = 0; count < steps; ++count) {
      advance(members);
      has_changed = stragglers_.look(loads_, ++step_) || has_changed;
    }
    return has_changed;
  }

  void advance(const std::vector<Member>& members) {
    std::chrono::nanoseconds longest{};
    for (const Member& member : members) longest = std::max(longest, member.per_shard * member.shards);
    while (loads_.size() < members.size()) loads_.push_back({.member = static_cast<int>(loads_.size())});
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::chrono::nanoseconds computing = members[i].per_shard * members[i].shards;
      loads_[i].shards = members[i].shards;
      loads_[i].computing += computing;
      loads_[i].waiting += longest - computing;
      ++loads_[i].steps;
    }
  }

  Stragglers::Speed speed(std::size_t member) const { return stragglers_.speeds().at(member); }

  Stragglers stragglers_{{.window = kWindow}};
  std::vector<Load> loads_;
  std::int64_t step_ = 0;
};

TEST_F(StragglersTest, HaveAFactorAndAFirstSlowStep) {
  ASSERT_FALSE(train(100, {{10ms}, {10ms}, {10ms}}));

  EXPECT_TRUE(train(kWindow, {{10ms}, {20ms}, {10ms}}));

  EXPECT_TRUE(speed(1).is_straggler);
  EXPECT_DOUBLE_EQ(speed(1).score, 2);
  EXPECT_EQ(speed(1).since_step, 101);
  EXPECT_FALSE(speed(0).is_straggler);
  EXPECT_FALSE(speed(2).is_straggler);
}

TEST_F(StragglersTest, SayHowLongAMemberComputesAndWaits) {
  train(kWindow, {{10ms}, {20ms}});

  EXPECT_EQ(speed(0).time_per_round, 10ms);
  EXPECT_DOUBLE_EQ(speed(0).waiting_share, 0.5);
  EXPECT_EQ(speed(1).time_per_round, 20ms);
  EXPECT_DOUBLE_EQ(speed(1).waiting_share, 0);
}

TEST_F(StragglersTest, AreNotFoundBeforeTheWindowIsFull) {
  EXPECT_FALSE(train(kWindow, {{10ms}, {20ms}}));
  EXPECT_TRUE(train(1, {{10ms}, {20ms}}));
}

TEST_F(StragglersTest, AreNotFoundWhenTimesDifferByChance) {
  std::mt19937_64 random(11);
  std::lognormal_distribution<double> draw(16, 0.4);
  const auto any = [&] { return Member{std::chrono::nanoseconds(static_cast<std::int64_t>(draw(random)))}; };

  for (int step = 0; step < 20'000; ++step) ASSERT_FALSE(train(1, {any(), any(), any(), any()})) << step;
}

TEST_F(StragglersTest, AreNotFoundAfterOneSlowStep) {
  train(kWindow, {{10ms}, {10ms}});

  EXPECT_FALSE(train(kWindow / 2 - 1, {{10ms}, {1s}}));
  EXPECT_FALSE(train(kWindow, {{10ms}, {10ms}}));
}

TEST_F(StragglersTest, KeepTheirStateBetweenTheTwoThresholds) {
  ASSERT_FALSE(train(100, {{10ms}, {13ms}}));
  ASSERT_TRUE(train(100, {{10ms}, {16ms}}));

  EXPECT_FALSE(train(100, {{10ms}, {13ms}}));
  EXPECT_TRUE(speed(1).is_straggler);

  EXPECT_TRUE(train(100, {{10ms}, {11ms}}));
  EXPECT_FALSE(speed(1).is_straggler);
  EXPECT_EQ(speed(1).since_step, -1);
}

TEST_F(StragglersTest, StayStragglersWhenTheyGetFewerShards) {
  ASSERT_TRUE(train(100, {{10ms, 3}, {20ms, 3}}));

  EXPECT_FALSE(train(100, {{10ms, 4}, {20ms, 2}}));
  EXPECT_TRUE(speed(1).is_straggler);
  EXPECT_DOUBLE_EQ(speed(1).score, 2);
}

TEST_F(StragglersTest, AreMeasuredInRoundsOfShards) {
  loads_ = {{.member = 0, .at_once = 1}, {.member = 1, .at_once = 4}};

  train(100, {{10ms, 2}, {5ms, 4}});

  EXPECT_EQ(speed(0).time_per_round, 10ms);
  EXPECT_EQ(speed(1).time_per_round, 20ms);
}

TEST_F(StragglersTest, WaitUntilEachMemberHasEndedAStep) {
  train(1, {{10ms}, {10ms}});
  ++loads_[0].steps;
  loads_[0].computing += 30ms;

  stragglers_.look(loads_, 2);

  EXPECT_EQ(speed(0).time_per_round, 0ns);
  EXPECT_DOUBLE_EQ(speed(0).score, 1);
}

TEST_F(StragglersTest, TakeNoSampleFromCountsThatStartAgain) {
  train(kWindow, {{10ms}, {10ms}});
  loads_[1] = {.member = 1};

  train(2, {{10ms}, {10ms}});

  EXPECT_EQ(speed(1).time_per_round, 10ms);
}

TEST_F(StragglersTest, AreForgottenWhenTheyAreGone) {
  ASSERT_TRUE(train(100, {{10ms}, {20ms}}));
  loads_.pop_back();

  EXPECT_TRUE(stragglers_.look(loads_, 101));

  EXPECT_EQ(stragglers_.speeds().size(), 1U);
}

TEST_F(StragglersTest, AreNotFoundInARunOfOne) {
  EXPECT_FALSE(train(100, {{1s}}));
}

std::chrono::nanoseconds end_of(const std::vector<int>& counts, const std::vector<Pace>& paces) {
  std::chrono::nanoseconds end{};
  for (std::size_t rank = 0; rank < paces.size(); ++rank) {
    const int rounds = (counts[rank] + paces[rank].at_once - 1) / paces[rank].at_once;
    end = std::max(end, paces[rank].time_per_round * rounds);
  }
  return end;
}

// The earliest end of all assignments with at least one shard for each rank.
std::chrono::nanoseconds earliest_end(int shards, const std::vector<Pace>& paces, std::vector<int> counts = {}) {
  if (counts.size() + 1 == paces.size()) {
    counts.push_back(shards);
    return end_of(counts, paces);
  }
  auto earliest = std::chrono::nanoseconds::max();
  const int others = static_cast<int>(paces.size() - counts.size()) - 1;
  for (int count = 1; count <= shards - others; ++count) {
    std::vector<int> more = counts;
    more.push_back(count);
    earliest = std::min(earliest, earliest_end(shards - count, paces, more));
  }
  return earliest;
}

TEST(BalancedShards, GiveHalfAsManyToARankThatIsHalfAsFast) {
  EXPECT_THAT(balanced_shards(6, std::vector<Pace>{{10ms}, {20ms}}), ElementsAre(4, 2));
  EXPECT_THAT(balanced_shards(6, std::vector<Pace>{{20ms}, {10ms}}), ElementsAre(2, 4));
}

TEST(BalancedShards, AreEvenAmongEquals) {
  EXPECT_THAT(balanced_shards(8, std::vector<Pace>(3, {10ms})), ElementsAre(3, 3, 2));
  EXPECT_THAT(balanced_shards(8, std::vector<Pace>(8, {10ms})), Each(1));
}

TEST(BalancedShards, GiveTheSlowestRankAtLeastOne) {
  EXPECT_THAT(balanced_shards(4, std::vector<Pace>{{1ms}, {1h}}), ElementsAre(3, 1));
}

TEST(BalancedShards, FillRounds) {
  EXPECT_THAT(balanced_shards(6, std::vector<Pace>{{10ms, 1}, {20ms, 4}}), ElementsAre(2, 4));
}

TEST(BalancedShards, EndAsEarlyAsAnyAssignmentDoes) {
  std::mt19937_64 random(3);
  const auto draw = [&random](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<Pace> paces(static_cast<std::size_t>(draw(1, 4)));
    for (Pace& pace : paces) pace = {draw(1, 50) * 1ms, draw(1, 3)};
    const int shards = static_cast<int>(paces.size()) + draw(0, 9);

    const std::vector<int> counts = balanced_shards(shards, paces);

    ASSERT_EQ(std::accumulate(counts.begin(), counts.end(), 0), shards) << "trial " << trial;
    ASSERT_THAT(counts, Each(testing::Ge(1))) << "trial " << trial;
    ASSERT_EQ(end_of(counts, paces), earliest_end(shards, paces)) << "trial " << trial;
  }
}

}  // namespace
}  // namespace holdfast::recovery
