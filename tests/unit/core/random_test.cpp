#include "holdfast/core/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace holdfast {
namespace {

using testing::ElementsAre;

// The statistics below are of fixed sequences, so a test passes always or never. Bounds are five standard deviations of
// perfect draws. A wrong generator misses them by far; a right one would fail for one in two million seeds.
constexpr double kDeviations = 5.0;

Random random_of(std::uint64_t seed) {
  return Random(seed, Purpose::user, 0, 0);
}

// tests/kat_vectors of the Random123 1.14 distribution, lines "philox4x32 10".
TEST(Philox, GivesTheKnownAnswers) {
  constexpr std::uint32_t kAll = 0xffffffff;

  EXPECT_THAT(philox4x32({0, 0, 0, 0}, {0, 0}), ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(philox4x32({kAll, kAll, kAll, kAll}, {kAll, kAll}),
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

// A second implementation, in Python, computed these sequences from their four numbers. Runs that are resumed with
// another version of Holdfast depend on them.
TEST(Random, NeverChangesItsSequence) {
  Random random(0x0123456789abcdef, Purpose::shuffle, 5, 0xfedcba9876543210);

  std::vector<std::uint32_t> draws(6);
  for (std::uint32_t& draw : draws) draw = random.next_u32();

  EXPECT_THAT(draws, ElementsAre(0xfac868a0, 0xd654952c, 0xd0cd1310, 0x6775f800, 0x3b663cc0, 0x4b98e8bf));
}

TEST(Random, DependsOnEachOfItsFourNumbers) {
  constexpr std::uint64_t kHigh = std::uint64_t{1} << 40;
  const std::uint64_t reference = Random(1, Purpose::user, 2, 3).next_u64();

  EXPECT_EQ(Random(1, Purpose::user, 2, 3).next_u64(), reference);
  EXPECT_NE(Random(2, Purpose::user, 2, 3).next_u64(), reference);
  EXPECT_NE(Random(1, Purpose::dropout, 2, 3).next_u64(), reference);
  EXPECT_NE(Random(1, Purpose::user, 3, 2).next_u64(), reference);
  EXPECT_NE(Random(1 + kHigh, Purpose::user, 2, 3).next_u64(), reference);
  EXPECT_NE(Random(1, Purpose::user, 2 + kHigh, 3).next_u64(), reference);
  EXPECT_NE(Random(1, Purpose::user, 2, 3 + kHigh).next_u64(), reference);
}

TEST(Random, CopiesItsPlaceInTheSequence) {
  Random original = random_of(1);
  original.next_u32();

  Random copy = original;

  for (int i = 0; i < 9; ++i) EXPECT_EQ(copy.next_u32(), original.next_u32());
}

TEST(Random, MakesSixtyFourBitsOfTwoDrawsLowHalfFirst) {
  Random words = random_of(4);
  const std::uint64_t low = words.next_u32();
  const std::uint64_t high = words.next_u32();

  EXPECT_EQ(random_of(4).next_u64(), high << 32 | low);
}

TEST(Random, DrawsUniformsFromZeroToBelowOne) {
  constexpr int kDraws = 100'000;
  Random random = random_of(5);

  double sum = 0;
  for (int i = 0; i < kDraws; ++i) {
    const float draw = random.uniform();
    ASSERT_GE(draw, 0.0F);
    ASSERT_LT(draw, 1.0F);
    ASSERT_EQ(std::ldexp(draw, 24), std::floor(std::ldexp(draw, 24)));
    sum += draw;
  }

  // Variance of one draw: 1 / 12.
  EXPECT_NEAR(sum / kDraws, 0.5, kDeviations * std::sqrt(1.0 / 12 / kDraws));
}

TEST(Random, DrawsNormalsWithTheMomentsOfTheNormalDistribution) {
  constexpr int kDraws = 200'000;
  Random random = random_of(6);

  double first = 0;
  double second = 0;
  double third = 0;
  double fourth = 0;
  int beyond_two = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double draw = random.normal();
    ASSERT_TRUE(std::isfinite(draw));
    first += draw;
    second += draw * draw;
    third += draw * draw * draw;
    fourth += draw * draw * draw * draw;
    beyond_two += std::abs(draw) > 2 ? 1 : 0;
  }

  // The variance of the k-th power is E[x^2k] - E[x^k]^2, with E[x^2, x^4, x^6, x^8] = 1, 3, 15, 105.
  const double root = std::sqrt(kDraws);
  EXPECT_NEAR(first / kDraws, 0, kDeviations * std::sqrt(1.0) / root);
  EXPECT_NEAR(second / kDraws, 1, kDeviations * std::sqrt(3.0 - 1.0) / root);
  EXPECT_NEAR(third / kDraws, 0, kDeviations * std::sqrt(15.0) / root);
  EXPECT_NEAR(fourth / kDraws, 3, kDeviations * std::sqrt(105.0 - 9.0) / root);
  const double share = std::erfc(2.0 / std::sqrt(2.0));
  EXPECT_NEAR(static_cast<double>(beyond_two) / kDraws, share, kDeviations * std::sqrt(share * (1 - share)) / root);
}

TEST(Random, DrawsEachOfAFewNumbersAlikeOften) {
  constexpr int kDraws = 60'000;
  constexpr std::uint64_t kBound = 6;
  Random random = random_of(7);

  std::vector<int> counts(kBound);
  for (int i = 0; i < kDraws; ++i) {
    const std::uint64_t draw = random.below(kBound);
    ASSERT_LT(draw, kBound);
    ++counts[draw];
  }

  const double share = 1.0 / kBound;
  for (const int count : counts) {
    EXPECT_NEAR(count, kDraws * share, kDeviations * std::sqrt(kDraws * share * (1 - share)));
  }
}

// A bound of three quarters of 2^64 shows biased methods. The remainder of a division would be in the first third half
// of the time, and a product without rejection would be a multiple of three half of the time.
TEST(Random, DrawsBelowAHugeBoundWithoutBias) {
  constexpr int kDraws = 30'000;
  constexpr std::uint64_t kThird = std::uint64_t{1} << 62;
  Random random = random_of(8);

  int in_first_third = 0;
  int multiples_of_three = 0;
  for (int i = 0; i < kDraws; ++i) {
    const std::uint64_t draw = random.below(3 * kThird);
    in_first_third += draw < kThird ? 1 : 0;
    multiples_of_three += draw % 3 == 0 ? 1 : 0;
  }

  const double deviation = std::sqrt(kDraws * (1.0 / 3) * (2.0 / 3));
  EXPECT_NEAR(in_first_third, kDraws / 3.0, kDeviations * deviation);
  EXPECT_NEAR(multiples_of_three, kDraws / 3.0, kDeviations * deviation);
}

TEST(Random, DrawsZeroBelowOne) {
  Random random = random_of(9);

  for (int i = 0; i < 100; ++i) EXPECT_EQ(random.below(1), 0U);
}

TEST(RandomDeathTest, AssertsThatABoundIsPositive) {
  Random random = random_of(9);

  EXPECT_DEATH(random.below(0), "bound > 0");
}

}  // namespace
}  // namespace holdfast
