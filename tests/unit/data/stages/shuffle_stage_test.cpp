// The order of a shuffle is a function of (seed, epoch, window), and every order is equally likely.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "holdfast/data/dataset.h"

namespace holdfast {
namespace {

using Order = std::vector<int>;

Dataset counted_samples(std::int64_t count) {
  Tensor features{Shape{count}};
  std::iota(features.values().begin(), features.values().end(), 0.0F);
  Tensor targets = features;
  return from_tensors(std::move(features), std::move(targets));
}

Order order_of(const Dataset& dataset, std::uint64_t seed, std::int64_t epoch) {
  Order order;
  for (std::int64_t position = 0; position < dataset.size(); ++position) {
    float feature = -1;
    float target = -1;
    dataset.load(seed, epoch, position, {.features = {&feature, 1}, .targets = {&target, 1}});
    EXPECT_EQ(feature, target) << "features and targets were torn apart";
    order.push_back(static_cast<int>(feature));
  }
  return order;
}

bool is_permutation_of(std::span<const int> order, int first) {
  std::vector<int> sorted(order.begin(), order.end());
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != first + static_cast<int>(i)) return false;
  }
  return true;
}

TEST(Shuffle, PermutesTheSamples) {
  for (const std::int64_t count : {1, 2, 3, 64, 1000}) {
    EXPECT_TRUE(is_permutation_of(order_of(counted_samples(count).shuffle(), 1, 0), 0)) << count;
  }
}

TEST(Shuffle, IsAFunctionOfSeedAndEpoch) {
  const Dataset dataset = counted_samples(100).shuffle();
  const Order order = order_of(dataset, 1, 2);

  // Other epochs in between push the order out of the cache of the stage.
  EXPECT_NE(order_of(dataset, 1, 3), order);
  EXPECT_NE(order_of(dataset, 2, 2), order);
  EXPECT_NE(order_of(dataset, 2, 1), order);
  EXPECT_EQ(order_of(dataset, 1, 2), order);
  EXPECT_EQ(order_of(counted_samples(100).shuffle(), 1, 2), order);
}

TEST(Shuffle, CanBeReadAtAnyPosition) {
  const Dataset dataset = counted_samples(50).shuffle(8);
  const Order order = order_of(dataset, 4, 1);

  for (const std::int64_t position : {49, 0, 25, 7, 8, 48}) {
    float feature = -1;
    float target = -1;
    dataset.load(4, 1, position, {.features = {&feature, 1}, .targets = {&target, 1}});
    EXPECT_EQ(feature, static_cast<float>(order[static_cast<std::size_t>(position)]));
  }
}

TEST(Shuffle, KeepsSamplesInTheirWindow) {
  const Order order = order_of(counted_samples(22).shuffle(8), 1, 0);

  EXPECT_TRUE(is_permutation_of(std::span(order).subspan(0, 8), 0));
  EXPECT_TRUE(is_permutation_of(std::span(order).subspan(8, 8), 8));
  EXPECT_TRUE(is_permutation_of(std::span(order).subspan(16, 6), 16));
}

TEST(Shuffle, OrdersEachWindowInItsOwnWay) {
  const Order order = order_of(counted_samples(128).shuffle(64), 1, 0);
  Order second(order.begin() + 64, order.end());

  for (int& sample : second) sample -= 64;

  EXPECT_NE(Order(order.begin(), order.begin() + 64), second);
}

TEST(Shuffle, WithAWindowOfOneKeepsTheOrder) {
  const Order order = order_of(counted_samples(10).shuffle(1), 1, 0);

  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(Shuffle, WithALargeWindowIsTheWholePermutation) {
  EXPECT_EQ(order_of(counted_samples(30).shuffle(30), 1, 0), order_of(counted_samples(30).shuffle(), 1, 0));
  EXPECT_EQ(order_of(counted_samples(30).shuffle(10'000), 1, 0), order_of(counted_samples(30).shuffle(), 1, 0));
}

TEST(Shuffle, AfterAnotherShuffleDrawsOnItsOwn) {
  const Order first = order_of(counted_samples(40).shuffle(), 1, 0);
  const Order both = order_of(counted_samples(40).shuffle().shuffle(), 1, 0);

  // If the second shuffle drew like the first, position i would hold first[first[i]].
  Order squared;
  for (const int sample : first) squared.push_back(first[static_cast<std::size_t>(sample)]);

  EXPECT_TRUE(is_permutation_of(both, 0));
  EXPECT_NE(both, squared);
}

// In a fixed sequence of epochs, each of the 24 orders of four samples is within five standard deviations of its share.
TEST(Shuffle, GivesEveryOrderEquallyOften) {
  constexpr int kEpochs = 24'000;
  constexpr double kShare = 1.0 / 24;
  const Dataset dataset = counted_samples(4).shuffle();

  std::map<Order, int> counts;
  for (int epoch = 0; epoch < kEpochs; ++epoch) ++counts[order_of(dataset, 1, epoch)];

  EXPECT_EQ(counts.size(), 24U);
  for (const auto& [order, count] : counts) {
    EXPECT_NEAR(count, kEpochs * kShare, 5 * std::sqrt(kEpochs * kShare * (1 - kShare)))
        << testing::PrintToString(order);
  }
}

// Each sample is at each position equally often, by Pearson's chi-square: with d = (n - 1)^2 degrees of freedom, mean d
// and variance 2 d, within five standard deviations.
TEST(Shuffle, PutsEverySampleAtEveryPositionEquallyOften) {
  constexpr int kEpochs = 5'000;
  constexpr int kCount = 20;
  const Dataset dataset = counted_samples(kCount).shuffle();

  std::vector<int> counts(kCount * kCount);
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const Order order = order_of(dataset, 2, epoch);
    for (std::size_t position = 0; position < order.size(); ++position) {
      ++counts[position * kCount + static_cast<std::size_t>(order[position])];
    }
  }

  constexpr double kExpected = static_cast<double>(kEpochs) / kCount;
  double chi_square = 0;
  for (const int count : counts) chi_square += (count - kExpected) * (count - kExpected) / kExpected;
  constexpr double kFreedom = (kCount - 1) * (kCount - 1);
  EXPECT_NEAR(chi_square, kFreedom, 5 * std::sqrt(2 * kFreedom));
}

}  // namespace
}  // namespace holdfast
