#include "core/philox.h"

#include <gtest/gtest.h>

#include "holdfast/core/random.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kSeed = 0x0123456789abcdef;
constexpr std::uint64_t kMajor = 0xfedcba9876543210;
constexpr std::uint64_t kMinor = 5;

PhiloxSequence dropout_sequence() {
  return philox_sequence(kSeed, static_cast<std::uint32_t>(Purpose::dropout), kMajor, kMinor);
}

TEST(PhiloxSequence, HoldsTheDrawsOfRandomFourInABlock) {
  Random random(kSeed, Purpose::dropout, kMajor, kMinor);

  for (std::uint64_t block = 0; block < 100; ++block) {
    const PhiloxBlock drawn = philox_draws(dropout_sequence(), block);
    for (const std::uint32_t draw : drawn.word) EXPECT_EQ(draw, random.next_u32()) << "block " << block;
  }
}

// The upper word of the position belongs to the counter: draws 2^34 apart differ.
TEST(PhiloxSequence, GoesOnAfterTheFirst32BitsOfBlocks) {
  const PhiloxBlock first = philox_draws(dropout_sequence(), 1);
  const PhiloxBlock far = philox_draws(dropout_sequence(), (std::uint64_t{1} << 32) + 1);
  const PhiloxSequence sequence = dropout_sequence();
  const PhiloxBlock expected = philox({{1, 1, sequence.high[0], sequence.high[1]}}, sequence.key);

  EXPECT_NE(first.word[0], far.word[0]);
  EXPECT_EQ(expected.word[0], far.word[0]);
}

TEST(UnitFloat, IsTheUniformDrawOfRandom) {
  Random draws(1, Purpose::user, 2, 3);
  Random uniforms(1, Purpose::user, 2, 3);

  for (int i = 0; i < 100; ++i) EXPECT_EQ(unit_float(draws.next_u32()), uniforms.uniform());
  EXPECT_EQ(unit_float(0), 0.0F);
  EXPECT_EQ(unit_float(0xffffffff), 1.0F - 0x1p-24F);
}

}  // namespace
}  // namespace holdfast
