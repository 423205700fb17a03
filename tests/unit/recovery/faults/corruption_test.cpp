// Which float a fault changes is a function of its seed, so a failing run can be repeated exactly.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>

#include "holdfast/base/error.h"
#include "holdfast/recovery/faults.h"

namespace holdfast::recovery {
namespace {

using testing::HasSubstr;

// Floats in two blocks, since a state has several.
struct Blocks {
  Blocks() { std::iota(values.begin(), values.end(), 1.0F); }

  std::string corrupt_with(const Corruption& corruption) {
    const std::array<std::span<float>, 3> blocks{std::span(values).first(3), std::span<float>(),
                                                 std::span(values).subspan(3)};
    return corrupt(corruption, blocks);
  }

  // Indices of floats that have changed.
  std::vector<std::size_t> changed() const {
    const Blocks before;
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::bit_cast<std::uint32_t>(values[i]) != std::bit_cast<std::uint32_t>(before.values[i]))
        indices.push_back(i);
    }
    return indices;
  }

  std::array<float, 8> values{};
};

TEST(Corrupt, FlipsOneBitOfOneFloat) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Blocks blocks;
    blocks.corrupt_with({.seed = seed});

    ASSERT_EQ(blocks.changed().size(), 1U) << seed;
    const std::size_t index = blocks.changed().front();
    const auto difference =
        std::bit_cast<std::uint32_t>(blocks.values[index]) ^ std::bit_cast<std::uint32_t>(Blocks().values[index]);
    EXPECT_TRUE(std::has_single_bit(difference)) << seed;
  }
}

TEST(Corrupt, PutsANanIntoOneFloat) {
  Blocks blocks;

  blocks.corrupt_with({.is_nan = true, .seed = 5});

  ASSERT_EQ(blocks.changed().size(), 1U);
  EXPECT_TRUE(std::isnan(blocks.values[blocks.changed().front()]));
}

TEST(Corrupt, RepeatsItselfForTheSameSeed) {
  Blocks first;
  Blocks second;

  EXPECT_EQ(first.corrupt_with({.seed = 11}), second.corrupt_with({.seed = 11}));

  EXPECT_EQ(first.changed(), second.changed());
}

TEST(Corrupt, LeavesNoFloatOutOverManySeeds) {
  std::set<std::size_t> places;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Blocks blocks;
    blocks.corrupt_with({.seed = seed});
    for (const std::size_t index : blocks.changed()) places.insert(index);
  }

  EXPECT_EQ(places.size(), Blocks().values.size());
}

TEST(Corrupt, SaysWhatItDid) {
  Blocks blocks;
  const std::string flip = blocks.corrupt_with({.seed = 3});
  EXPECT_THAT(flip, HasSubstr("of float " + std::to_string(blocks.changed().front()) + " of 8"));

  Blocks others;
  EXPECT_THAT(others.corrupt_with({.is_nan = true, .seed = 3}), HasSubstr("a NaN as float "));
}

TEST(Corrupt, RefusesAStateWithoutFloats) {
  try {
    corrupt({.target = CorruptionTarget::slot}, {});
    FAIL() << "corrupted nothing";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("a fault cannot change a slot"));
  }
}

}  // namespace
}  // namespace holdfast::recovery
