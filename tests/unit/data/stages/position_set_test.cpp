#include "data/stages/position_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "holdfast/core/random.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using PositionRange = PositionSet::Range;

// One bit for each of the positions 0 to 31.
std::uint32_t bits_of(const PositionSet& positions) {
  std::uint32_t bits = 0;
  for (const PositionRange& range : positions.ranges()) {
    for (std::int64_t i = range.begin; i < range.end; ++i) bits |= 1U << i;
  }
  return bits;
}

PositionSet random_positions(Random& random) {
  std::vector<PositionRange> ranges;
  for (std::uint64_t count = random.below(6); count > 0; --count) {
    const auto begin = static_cast<std::int64_t>(random.below(32));
    ranges.push_back({begin, begin + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(33 - begin)))});
  }
  return PositionSet(std::move(ranges));
}

TEST(PositionSet, JoinsRangesThatTouchOrOverlap) {
  const PositionSet positions({{5, 7}, {1, 3}, {3, 4}, {6, 9}, {12, 12}});

  EXPECT_THAT(positions.ranges(), ElementsAre(PositionRange{1, 4}, PositionRange{5, 9}));
  EXPECT_EQ(positions.count(), 7);
}

TEST(PositionSet, KeepsARangeThatLiesInAnother) {
  EXPECT_THAT(PositionSet({{0, 10}, {2, 3}}).ranges(), ElementsAre(PositionRange{0, 10}));
}

TEST(PositionSet, IsEmptyBelowZero) {
  EXPECT_THAT(PositionSet::below(0).ranges(), IsEmpty());
  EXPECT_TRUE(PositionSet::below(0).is_empty());
  EXPECT_EQ(PositionSet::below(3).count(), 3);
}

TEST(PositionSet, IntersectsAsSetsDo) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(seed, Purpose::user, 0, 0);
    const PositionSet a = random_positions(random);
    const PositionSet b = random_positions(random);

    EXPECT_EQ(bits_of(a.intersection(b)), bits_of(a) & bits_of(b)) << "seed " << seed;
    EXPECT_EQ(a.intersection(b).count(), std::popcount(bits_of(a) & bits_of(b))) << "seed " << seed;
  }
}

}  // namespace
}  // namespace holdfast
