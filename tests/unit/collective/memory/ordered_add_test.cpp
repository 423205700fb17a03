#include "collective/memory/ordered_add.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "collective/shard_assignment.h"
#include "holdfast/core/random.h"
#include "unit/collective/support/bits.h"

namespace holdfast {
namespace {

// More than two blocks of temporaries, and not a whole number of them.
constexpr std::size_t kAddedFloats = 2500;

float tree_sum(const std::vector<std::vector<float>>& shards, ShardRange node, std::size_t at) {
  if (node.count() == 1) return shards[static_cast<std::size_t>(node.begin)][at];
  const auto [left, right] = ShardTree::children(node);
  return tree_sum(shards, left, at) + tree_sum(shards, right, at);
}

}  // namespace

TEST(AddInOrder, GivesTheBitsOfTheTree) {
  for (int shards = 1; shards <= 9; ++shards) {
    std::vector<std::vector<float>> values(static_cast<std::size_t>(shards), std::vector<float>(kAddedFloats));
    std::vector<const float*> leaves;
    std::vector<ShardRange> nodes;
    for (int shard = 0; shard < shards; ++shard) {
      Random random(2, Purpose::user, 0, static_cast<std::uint64_t>(shard));
      auto& of_shard = values[static_cast<std::size_t>(shard)];
      for (float& value : of_shard) value = random.normal() * std::exp2(static_cast<float>(random.below(24)));
      leaves.push_back(of_shard.data());
      nodes.push_back({shard, shard + 1});
    }
    const FloatRange range{7, kAddedFloats - 3};
    std::vector<float> sum(range.end - range.begin);
    std::vector<float> expected;
    for (std::size_t at = range.begin; at < range.end; ++at) expected.push_back(tree_sum(values, {0, shards}, at));

    const bool is_finite = add_in_order(sum_program(ShardTree(shards), nodes), leaves, range, sum.data());

    EXPECT_TRUE(is_finite);
    EXPECT_TRUE(bits(sum) == bits(expected)) << shards << " shards";
  }
}

TEST(AddInOrder, FindsWhatIsNotFiniteInAnyBlock) {
  for (const std::size_t at : {std::size_t{0}, std::size_t{1024}, kAddedFloats - 1}) {
    for (const std::size_t leaves : {std::size_t{1}, std::size_t{2}}) {
      std::vector<float> values(kAddedFloats, 1.0F);
      values[at] = std::numeric_limits<float>::infinity();
      const std::vector<const float*> pointers(leaves, values.data());
      std::vector<ShardRange> nodes;
      for (int shard = 0; shard < static_cast<int>(leaves); ++shard) nodes.push_back({shard, shard + 1});
      std::vector<float> sum(kAddedFloats);

      EXPECT_FALSE(add_in_order(sum_program(ShardTree(static_cast<int>(leaves)), nodes), pointers, {0, kAddedFloats},
                                sum.data()));
    }
  }
}

}  // namespace holdfast
