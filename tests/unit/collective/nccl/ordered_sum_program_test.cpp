// The kernel's additions, compiled for the host, compared bit for bit with add_in_order().

#include "collective/nccl/ordered_sum_program.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "collective/memory/ordered_add.h"
#include "collective/shard_assignment.h"
#include "holdfast/base/error.h"
#include "holdfast/core/random.h"

namespace holdfast {
namespace {

constexpr std::size_t kFloats = 64;

struct alignas(16) Leaf {
  float values[kFloats];
};

std::vector<Leaf> drawn_leaves(std::size_t count) {
  std::vector<Leaf> leaves(count);
  Random random(7, Purpose::user, 0, count);
  for (Leaf& leaf : leaves) {
    for (float& value : leaf.values) value = random.normal() * std::exp2(static_cast<float>(random.below(40)));
  }
  return leaves;
}

std::vector<const float*> pointers_to(const std::vector<Leaf>& leaves) {
  std::vector<const float*> pointers;
  for (const Leaf& leaf : leaves) pointers.push_back(leaf.values);
  return pointers;
}

std::vector<SumInstruction> program_of(const ShardAssignment& assignment) {
  return sum_program(ShardTree(assignment.shards()), assignment.covering_nodes());
}

template <int kDepth, int kWidth>
std::vector<float> sums_of(const OrderedSumProgram& program) {
  std::vector<float> sums;
  for (std::size_t i = 0; i < kFloats / kWidth; ++i) {
    const auto pack = ordered_sum_at<kDepth, kWidth>(program, i);
    sums.insert(sums.end(), pack.values, pack.values + kWidth);
  }
  return sums;
}

bool are_the_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

TEST(OrderedSumProgram, GivesTheBitsOfTheHostsSum) {
  Random random(3, Purpose::user, 0, 0);
  for (int trial = 0; trial < 100; ++trial) {
    const int ranks = 1 + static_cast<int>(random.below(6));
    std::vector<int> counts;
    for (int rank = 0; rank < ranks; ++rank) counts.push_back(1 + static_cast<int>(random.below(9)));
    const ShardAssignment assignment(counts);
    const std::vector<SumInstruction> instructions = program_of(assignment);
    const std::vector<Leaf> leaves = drawn_leaves(assignment.covering_nodes().size());
    const std::vector<const float*> pointers = pointers_to(leaves);
    std::vector<float> expected(kFloats);
    add_in_order(instructions, pointers, {0, kFloats}, expected.data());

    const OrderedSumProgram program = ordered_sum_program(instructions, pointers);

    ASSERT_LE(program.depth, 16);
    EXPECT_EQ(are_the_same_bits(sums_of<16, 1>(program), expected), true) << "trial " << trial;
    EXPECT_EQ(are_the_same_bits(sums_of<16, 4>(program), expected), true) << "trial " << trial;
  }
}

// The smallest kernel suffices for this.
TEST(OrderedSumProgram, NeedsAStackOfTwoForTwoRanks) {
  const std::vector<Leaf> leaves = drawn_leaves(2);
  const std::vector<const float*> pointers = pointers_to(leaves);
  std::vector<float> expected(kFloats);
  const std::vector<SumInstruction> instructions = program_of(ShardAssignment::even(2, 2));
  add_in_order(instructions, pointers, {0, kFloats}, expected.data());

  const OrderedSumProgram program = ordered_sum_program(instructions, pointers);

  EXPECT_EQ(program.depth, 2);
  EXPECT_EQ(are_the_same_bits(sums_of<2, 4>(program), expected), true);
}

TEST(OrderedSumProgram, NeedsNoDeeperStackThanKernelsHaveForAsManyLeavesAsTheyTake) {
  const std::vector<const float*> pointers(kMostSumLeaves, nullptr);

  const OrderedSumProgram program =
      ordered_sum_program(program_of(ShardAssignment::even(kMostSumLeaves, kMostSumLeaves)), pointers);

  EXPECT_EQ(program.depth, 9);
}

TEST(OrderedSumProgram, RefusesMoreLeavesThanAKernelTakes) {
  const std::vector<const float*> pointers(kMostSumLeaves + 1, nullptr);
  const std::vector<SumInstruction> instructions =
      program_of(ShardAssignment::even(kMostSumLeaves + 1, kMostSumLeaves + 1));

  try {
    ordered_sum_program(instructions, pointers);
    FAIL() << "it was compiled";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(failure.what()).find("257"), std::string::npos) << failure.what();
  }
}

TEST(OrderedSumProgram, KnowsBitsThatAreNotFinite) {
  const auto is_finite = [](float value) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return is_finite_bits(bits);
  };

  EXPECT_TRUE(is_finite(0.0F));
  EXPECT_TRUE(is_finite(-std::numeric_limits<float>::max()));
  EXPECT_TRUE(is_finite(std::numeric_limits<float>::denorm_min()));
  EXPECT_FALSE(is_finite(std::numeric_limits<float>::infinity()));
  EXPECT_FALSE(is_finite(-std::numeric_limits<float>::infinity()));
  EXPECT_FALSE(is_finite(std::numeric_limits<float>::quiet_NaN()));
}

}  // namespace holdfast
