// Which shards are checked and which rank is believed: functions of numbers alone, so that no training is needed.

#include "train/step/gradient_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Digest digest_named(std::uint8_t name) {
  Digest digest;
  digest.bytes.fill(name);
  return digest;
}

// Reports of ranks that all compute digest_named(owner) of each owner's shards.
std::vector<CheckReport> right_reports(int size) {
  std::vector<CheckReport> reports(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    CheckReport& report = reports[static_cast<std::size_t>(rank)];
    report.own = digest_named(static_cast<std::uint8_t>(rank));
    for (int distance = 1; distance <= kMostRecomputations; ++distance) {
      report.of_before[static_cast<std::size_t>(distance - 1)] =
          digest_named(static_cast<std::uint8_t>(rank_before(rank, distance, size)));
    }
  }
  return reports;
}

std::vector<float> sum_of(const std::vector<CheckReport>& reports, int recomputations) {
  std::vector<float> sum(kCheckFloats, 0.0F);
  for (const CheckReport& report : reports) add_to_sum(report, recomputations, sum);
  return sum;
}

std::vector<std::pair<int, int>> ranks_and_owners(const CheckVerdict& verdict) {
  std::vector<std::pair<int, int>> wrong;
  for (const WrongDigest& digest : verdict.wrong) wrong.emplace_back(digest.rank, digest.owner);
  return wrong;
}

}  // namespace

TEST(CheckedShards, ComeEverySoManySteps) {
  std::vector<std::int64_t> steps;
  for (std::int64_t step = 0; step < 20; ++step) {
    if (checked_shards({.every = 6, .shards = 2}, step) == 2) steps.push_back(step);
  }

  EXPECT_THAT(steps, ElementsAre(5, 11, 17));
}

TEST(CheckedShards, AreZeroIfChecksAreOffAndAllIfAllAreAskedFor) {
  EXPECT_EQ(checked_shards({.every = 0, .shards = 1}, 499), 0);
  EXPECT_GE(checked_shards({.every = 1, .shards = 0}, 499), 1'000'000);
}

TEST(DrawnShards, AreAFunctionOfSeedStepAndAssignment) {
  const std::vector<int> drawn = drawn_shards(7, 100, {4, 20}, 3);

  EXPECT_EQ(drawn_shards(7, 100, {4, 20}, 3), drawn);
  std::set<std::vector<int>> others;
  for (int i = 1; i <= 8; ++i) {
    others.insert(drawn_shards(7 + static_cast<std::uint64_t>(i), 100, {4, 20}, 3));
    others.insert(drawn_shards(7, 100 + i, {4, 20}, 3));
  }
  EXPECT_GE(others.size(), 10U);
}

TEST(DrawnShards, AreShardsOfTheRankOnceEachAndInOrder) {
  for (std::int64_t step = 0; step < 200; ++step) {
    const std::vector<int> drawn = drawn_shards(1, step, {3, 8}, 4);

    ASSERT_EQ(drawn.size(), 4U);
    EXPECT_GE(drawn.front(), 3);
    EXPECT_LT(drawn.back(), 8);
    EXPECT_TRUE(std::adjacent_find(drawn.begin(), drawn.end(), std::greater_equal<>()) == drawn.end());
  }
}

TEST(DrawnShards, AreAllShardsIfTheRankHasNoMore) {
  EXPECT_THAT(drawn_shards(1, 2, {3, 6}, 9), ElementsAre(3, 4, 5));
}

// Binomial: in 10,000 draws of one of eight, each shard has 1,250, with a standard deviation of 33. Six of these are
// 200.
TEST(DrawnShards, AreEquallyLikely) {
  std::map<int, int> counts;
  for (std::int64_t step = 0; step < 10'000; ++step) ++counts[drawn_shards(5, step, {8, 16}, 1).at(0)];

  ASSERT_EQ(counts.size(), 8U);
  for (const auto& [shard, count] : counts) EXPECT_NEAR(count, 1250, 200) << shard;
}

TEST(RankBefore, GoesRoundInARing) {
  EXPECT_EQ(rank_before(2, 1, 3), 1);
  EXPECT_EQ(rank_before(0, 1, 3), 2);
  EXPECT_EQ(rank_before(0, 2, 3), 1);
  EXPECT_EQ(rank_before(0, 1, 1), 0);
}

TEST(SumOfReports, IsZeroIfAllAgree) {
  for (int size = 1; size <= 5; ++size) {
    for (const bool is_repeated : {false, true}) {
      EXPECT_TRUE(is_agreed(sum_of(right_reports(size), recomputations(is_repeated, size)))) << size;
    }
  }
}

TEST(SumOfReports, ShowsASingleBitOfAnyReport) {
  for (int rank = 0; rank < 3; ++rank) {
    for (std::size_t byte = 0; byte < kCheckFloats; ++byte) {
      std::vector<CheckReport> own = right_reports(3);
      own[static_cast<std::size_t>(rank)].own.bytes[byte] ^= 1;
      std::vector<CheckReport> other = right_reports(3);
      other[static_cast<std::size_t>(rank)].of_before[0].bytes[byte] ^= 128;

      EXPECT_FALSE(is_agreed(sum_of(own, 1)));
      EXPECT_FALSE(is_agreed(sum_of(other, 1)));
    }
  }
}

TEST(Verdict, NamesTheRankThatGotAnotherDigestAtFirst) {
  for (const int size : {2, 3, 4}) {
    std::vector<CheckReport> owner_is_wrong = right_reports(size);
    owner_is_wrong[1].own = digest_named(77);
    std::vector<CheckReport> other_is_wrong = right_reports(size);
    other_is_wrong[1].of_before[0] = digest_named(78);

    const CheckVerdict owner = judge(owner_is_wrong, right_reports(size));
    const CheckVerdict other = judge(other_is_wrong, right_reports(size));

    EXPECT_EQ(owner.kind, CheckVerdict::Kind::agreed);
    EXPECT_THAT(ranks_and_owners(owner), ElementsAre(std::pair(1, 1)));
    EXPECT_EQ(owner.wrong[0].digest, digest_named(77));
    EXPECT_EQ(owner.wrong[0].right, digest_named(1));
    EXPECT_EQ(other.kind, CheckVerdict::Kind::agreed);
    EXPECT_THAT(ranks_and_owners(other), ElementsAre(std::pair(1, 0)));
    EXPECT_TRUE(other.is_wrong(1));
    EXPECT_FALSE(other.is_wrong(0));
    EXPECT_TRUE(other.spares_somebody(size));
  }
}

TEST(Verdict, SparesNoRankIfAllWereWrong) {
  std::vector<CheckReport> first = right_reports(2);
  first[0].own = digest_named(77);
  first[1].own = digest_named(78);

  EXPECT_FALSE(judge(first, right_reports(2)).spares_somebody(2));
}

TEST(Verdict, FollowsTwoOfThree) {
  std::vector<CheckReport> reports = right_reports(3);
  reports[2].own = digest_named(77);

  const CheckVerdict verdict = judge(reports, reports);

  EXPECT_EQ(verdict.kind, CheckVerdict::Kind::outvoted);
  EXPECT_TRUE(verdict.is_wrong(2));
  EXPECT_FALSE(verdict.is_wrong(0) || verdict.is_wrong(1));
}

TEST(Verdict, IsUndecidedIfTwoDifferOrAllThreeDo) {
  std::vector<CheckReport> two = right_reports(2);
  two[1].own = digest_named(77);
  std::vector<CheckReport> three = right_reports(3);
  three[0].own = digest_named(77);
  three[1].of_before[0] = digest_named(78);

  EXPECT_EQ(judge(two, two).kind, CheckVerdict::Kind::undecided);
  EXPECT_EQ(judge(three, three).kind, CheckVerdict::Kind::undecided);
}

TEST(Reports, AreDescribedByOwner) {
  const std::string text = describe(right_reports(2), 1);

  EXPECT_THAT(text, HasSubstr("of rank 1: rank 1 computed " + digest_named(1).hex() + ", rank 0 computed " +
                              digest_named(1).hex()));
}

}  // namespace holdfast
