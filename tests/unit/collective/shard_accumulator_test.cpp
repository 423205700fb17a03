// Whatever the order in which shards end, and whatever the number of threads, the bits must be those of the tree.

#include "collective/shard_accumulator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <thread>
#include <tuple>

#include "collective/memory/ordered_add.h"
#include "holdfast/core/random.h"
#include "support/passes.h"
#include "unit/collective/support/bits.h"

namespace holdfast {
namespace {

constexpr std::size_t kFloats = 48;
constexpr std::size_t kGradients = 32;

// Values of very different sizes, so that another order gives other bits.
std::vector<float> shard_values(int shard) {
  Random random(1, Purpose::user, 0, static_cast<std::uint64_t>(shard));
  std::vector<float> values(kFloats);
  for (float& value : values) value = random.normal() * std::exp2(static_cast<float>(random.below(24)));
  return values;
}

struct Slots {
  explicit Slots(int count) : memory(static_cast<std::size_t>(count), std::vector<float>(kFloats, -1.0F)) {}
  // A third of each slot is the tail.
  std::vector<Slot> spans() {
    std::vector<Slot> slots;
    for (std::vector<float>& floats : memory) {
      slots.push_back({std::span(floats).first(kGradients), std::span(floats).subspan(kGradients)});
    }
    return slots;
  }
  std::vector<std::vector<float>> memory;
};

void compute(ShardAccumulator& accumulator, int shard) {
  const std::vector<float> values = shard_values(shard);
  const Slot slot = accumulator.acquire(shard);
  std::copy_n(values.begin(), kGradients, slot.gradients.begin());
  std::copy(values.begin() + kGradients, values.end(), slot.tail.begin());
  accumulator.complete(shard, {0, kFloats});
}

std::vector<float> reference(int shards) {
  const ShardTree tree(shards);
  std::vector<ShardRange> singles;
  std::vector<std::vector<float>> values;
  std::vector<const float*> leaves;
  for (int shard = 0; shard < shards; ++shard) {
    singles.push_back({shard, shard + 1});
    values.push_back(shard_values(shard));
  }
  for (const auto& value : values) leaves.push_back(value.data());
  std::vector<float> sum(kFloats);
  add_in_order(sum_program(tree, singles), leaves, {0, kFloats}, sum.data());
  return sum;
}

}  // namespace

TEST(ShardAccumulator, GivesTheTreesBitsInWhateverOrderShardsEnd) {
  for (const int shards : {1, 2, 3, 5, 8, 13}) {
    std::vector<int> order(static_cast<std::size_t>(shards));
    std::iota(order.begin(), order.end(), 0);
    Random random(2, Purpose::user, 0, 0);
    for (int round = 0; round < 20; ++round) {
      Slots slots(shards);
      ShardAccumulator accumulator(ShardTree(shards), {0, shards}, slots.spans());

      for (const int shard : order) compute(accumulator, shard);
      accumulator.finish(pass_in_pieces);

      const std::vector<int> covering = accumulator.covering_slots();
      ASSERT_EQ(covering.size(), 1U);
      EXPECT_EQ(bits(slots.memory[static_cast<std::size_t>(covering[0])]), bits(reference(shards)));
      for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    }
  }
}

// Adds gradients of the last shard while the rest of it is not computed yet.
TEST(ShardAccumulator, GivesTheTreesBitsWhereItAddsAhead) {
  for (const int shards : {1, 2, 3, 5, 8, 13}) {
    Slots slots(shards);
    ShardAccumulator accumulator(ShardTree(shards), {0, shards}, slots.spans());
    for (int shard = 0; shard + 1 < shards; ++shard) compute(accumulator, shard);
    const std::vector<float> values = shard_values(shards - 1);
    const Slot slot = accumulator.acquire(shards - 1);
    std::vector<int> ahead;

    for (const FloatRange range : {FloatRange{20, kGradients}, {0, 20}}) {
      for (std::size_t i = range.begin; i < range.end; ++i) slot.gradients[i] = values[i];
      ahead = accumulator.add_ahead(shards - 1, range);
    }
    std::copy(values.begin() + kGradients, values.end(), slot.tail.begin());
    accumulator.complete(shards - 1, {kGradients, kFloats});
    accumulator.finish(pass_alone);

    const std::vector<int> covering = accumulator.covering_slots();
    ASSERT_EQ(covering.size(), 1U);
    EXPECT_EQ(bits(slots.memory[static_cast<std::size_t>(covering[0])]), bits(reference(shards)));
    EXPECT_EQ(ahead, covering);
  }
}

// The siblings of these nodes belong to other ranks.
TEST(ShardAccumulator, PredictsWhichSlotsWillCoverItsShards) {
  Slots slots(5);
  ShardAccumulator accumulator(ShardTree(8), {1, 6}, slots.spans());
  for (int shard = 1; shard < 5; ++shard) compute(accumulator, shard);
  accumulator.acquire(5);

  const std::vector<int> ahead = accumulator.add_ahead(5, {0, kGradients});
  accumulator.complete(5, {kGradients, kFloats});
  accumulator.finish(pass_alone);

  EXPECT_EQ(ahead.size(), 3U);
  EXPECT_EQ(ahead, accumulator.covering_slots());
}

TEST(ShardAccumulator, NeedsNoMoreSlotsThanItSays) {
  constexpr int kShards = 64;
  constexpr int kWorkers = 3;
  Slots slots(ShardAccumulator::slots_needed(kShards, kWorkers));
  ShardAccumulator accumulator(ShardTree(kShards), {0, kShards}, slots.spans());
  ASSERT_LT(slots.memory.size(), static_cast<std::size_t>(kShards));

  // Two shards hang while the third worker computes all others. So the most possible shards are complete but not added.
  accumulator.acquire(0);
  accumulator.acquire(21);
  for (int shard = 1; shard < kShards; ++shard) {
    if (shard != 21) compute(accumulator, shard);
  }
}

TEST(ShardAccumulator, GivesTheTreesBitsFromSeveralThreads) {
  constexpr int kShards = 32;
  constexpr int kThreads = 4;
  for (int round = 0; round < 20; ++round) {
    Slots slots(kShards);
    ShardAccumulator accumulator(ShardTree(kShards), {0, kShards}, slots.spans());
    std::vector<std::thread> threads;

    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (int shard = thread; shard < kShards; shard += kThreads) compute(accumulator, shard);
      });
    }
    for (std::thread& thread : threads) thread.join();
    accumulator.finish(pass_alone);

    EXPECT_EQ(bits(slots.memory[static_cast<std::size_t>(accumulator.covering_slots().at(0))]),
              bits(reference(kShards)));
  }
}

TEST(ShardAccumulator, AddsTheRangeAlone) {
  Slots slots(2);
  ShardAccumulator accumulator(ShardTree(2), {0, 2}, slots.spans());
  for (int shard = 0; shard < 2; ++shard) {
    const Slot slot = accumulator.acquire(shard);
    std::fill(slot.gradients.begin(), slot.gradients.end(), 1.0F);
    std::fill(slot.tail.begin(), slot.tail.end(), 1.0F);
    accumulator.complete(shard, {16, 40});
  }
  accumulator.finish(pass_in_pieces);

  const std::vector<float>& sum = slots.memory[static_cast<std::size_t>(accumulator.covering_slots().at(0))];

  EXPECT_EQ(sum[15], 1.0F);
  EXPECT_EQ(sum[16], 2.0F);
  EXPECT_EQ(sum[39], 2.0F);
  EXPECT_EQ(sum[40], 1.0F);
}

TEST(ShardAccumulator, LeavesPartsOut) {
  const std::vector<FloatRange> parts = {{0, 5}, {16, 20}};
  Slots slots(4);
  ShardAccumulator accumulator(ShardTree(4), {0, 4}, slots.spans());
  for (const int shard : {2, 3, 0, 1}) {
    const Slot slot = accumulator.acquire(shard);
    std::fill(slot.gradients.begin(), slot.gradients.end(), 1.0F);
    std::fill(slot.tail.begin(), slot.tail.end(), 1.0F);
    // The one who writes it later looks at it.
    slot.gradients[17] = std::numeric_limits<float>::infinity();
    accumulator.complete(shard, {0, kFloats}, parts);
  }

  EXPECT_EQ(accumulator.finish(pass_in_pieces), std::optional(true));

  const std::vector<ShardAccumulator::Sum> sums = accumulator.sums();
  ASSERT_EQ(sums.size(), 1U);
  EXPECT_EQ(sums[0].shards, (ShardRange{0, 4}));
  for (std::size_t i = 0; i < kGradients; ++i) {
    if (i == 17) continue;
    EXPECT_EQ(sums[0].slot.gradients[i], i < 5 || (i >= 16 && i < 20) ? 1 : 4) << i;
  }
  for (const float number : sums[0].slot.tail) EXPECT_EQ(number, 4);
}

TEST(ShardAccumulator, SaysWhetherTheLastSumIsFinite) {
  const float largest = std::numeric_limits<float>::max();
  for (const auto& [one, other, expected] : {std::tuple(1.0F, 2.0F, true), {largest, largest, false}}) {
    Slots slots(2);
    ShardAccumulator accumulator(ShardTree(2), {0, 2}, slots.spans());
    for (int shard = 0; shard < 2; ++shard) {
      accumulator.acquire(shard).gradients.back() = shard == 0 ? one : other;
      accumulator.complete(shard, {0, kFloats});
    }
    EXPECT_EQ(accumulator.finish(pass_in_pieces), std::optional(expected));
  }
  Slots slots(1);
  ShardAccumulator nothing_to_add(ShardTree(1), {0, 1}, slots.spans());
  compute(nothing_to_add, 0);
  EXPECT_EQ(nothing_to_add.finish(pass_alone), std::nullopt);
}

TEST(ShardAccumulator, KeepsTheCoveringNodesOfItsShardsApart) {
  Slots slots(3);
  ShardAccumulator accumulator(ShardTree(8), {1, 4}, slots.spans());

  for (const int shard : {3, 1, 2}) compute(accumulator, shard);
  accumulator.finish(pass_alone);

  const std::vector<int> covering = accumulator.covering_slots();
  ASSERT_EQ(covering.size(), 2U);
  EXPECT_EQ(bits(slots.memory[static_cast<std::size_t>(covering[0])]), bits(shard_values(1)));
}

}  // namespace holdfast
