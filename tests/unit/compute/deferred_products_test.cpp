#include "compute/deferred_products.h"

#include <gtest/gtest.h>

#include <numeric>

namespace holdfast::compute {
namespace {

// The least that is worth it: 2^20 numbers.
constexpr DenseShape kLarge = {.rows = 3, .inputs = 1024, .outputs = 1024};
constexpr DeferralLimits kFewSamples = {.least_samples = 3, .most_samples = 3, .all_samples = 6};

DeferralLimits limits_of(std::int64_t most, std::int64_t all) {
  return {.least_samples = most, .most_samples = most, .all_samples = all};
}

TEST(DeferralLimits, AllowLargeKernelsForFewSamples) {
  EXPECT_TRUE(kFewSamples.allow(1024, 1024));
  EXPECT_FALSE(kFewSamples.allow(1024, 1023));
  // 256 samples of a shard, and copies of half of the gradient.
  EXPECT_TRUE(limits_of(256, 256).allow(1024, 1024));
  EXPECT_FALSE(limits_of(257, 257).allow(4096, 4096));
  EXPECT_FALSE(limits_of(3, 257).allow(1024, 1024));
}

TEST(DeferredProducts, KeepTheFactorsByTilesInTheOrderOfTheGradients) {
  constexpr DenseShape kUneven = {.rows = 2, .inputs = 1030, .outputs = 1100};
  const std::vector<std::size_t> kernels = {16, 1'200'000, 2'400'000};
  const std::vector<float> gradients(4'000'000);
  std::vector<float> input(2 * 1030), output_gradient(2 * 1100);
  std::iota(input.begin(), input.end(), 0.0F);
  std::iota(output_gradient.begin(), output_gradient.end(), 5000.0F);
  DeferredProducts products;
  products.reset(kFewSamples);
  products.begin(gradients, kernels);

  products.take(kUneven, input.data(), output_gradient.data(), gradients.data() + 1'200'000);
  products.take(kUneven, input.data(), output_gradient.data(), gradients.data() + 16);

  ASSERT_EQ(products.products().size(), 2U);
  EXPECT_EQ(products.products()[1]->begin, 1'200'000U);
  const DeferredProduct& first = *products.products()[0];
  EXPECT_EQ(first.begin, 16U);
  EXPECT_EQ(first.end(), 16U + 1030 * 1100);
  EXPECT_EQ(first.tiles(), 17);
  EXPECT_EQ(first.rows_of(15), 64);
  EXPECT_EQ(first.rows_of(16), 6);
  for (std::int64_t tile = 0; tile < first.tiles(); ++tile) {
    const float* const of_tile = first.input_tiles.data() + tile * 64 * 2;
    for (std::int64_t sample = 0; sample < 2; ++sample) {
      for (std::int64_t row = 0; row < first.rows_of(tile); ++row)
        ASSERT_EQ(of_tile[sample * first.rows_of(tile) + row], static_cast<float>(sample * 1030 + tile * 64 + row));
    }
  }
  EXPECT_EQ(std::vector(first.output_gradient.data(), first.output_gradient.data() + output_gradient.size()),
            output_gradient);
}

TEST(DeferredProducts, WantNothingElse) {
  const std::vector<std::size_t> kernels = {64};
  const std::vector<float> gradients(64 + 1024 * 1024), elsewhere(1024 * 1024), numbers(3 * 1024);
  DeferredProducts products;
  EXPECT_FALSE(products.wants(kLarge, gradients.data() + 64)) << "no shard has begun";
  products.reset(kFewSamples);
  EXPECT_FALSE(products.wants(kLarge, gradients.data() + 64)) << "the layers have not named their kernels";
  products.begin(gradients, kernels);

  EXPECT_FALSE(products.wants(kLarge, elsewhere.data()));
  EXPECT_FALSE(products.wants(kLarge, gradients.data()));
  EXPECT_FALSE(products.wants(kLarge, gradients.data() + gradients.size()));
  EXPECT_FALSE(products.wants({.rows = 3, .inputs = 8, .outputs = 8}, gradients.data() + 64));
  EXPECT_TRUE(products.wants(kLarge, gradients.data() + 64));
  products.take(kLarge, numbers.data(), numbers.data(), gradients.data() + 64);
  EXPECT_EQ(products.products().size(), 1U);
  products.reset(kFewSamples);
  EXPECT_TRUE(products.products().empty());
}

// A shard of 256 samples and one of 257 came to different answers, and one of the two was missing in the sum.
TEST(DeferredProducts, AreWantedByTheLimitsAndNotByTheShard) {
  const std::vector<std::size_t> kernels = {0};
  const std::vector<float> gradients(4096 * 4096);
  for (const std::int64_t most : {256, 257}) {
    DeferredProducts products;
    products.reset({.least_samples = most - 1, .most_samples = most, .all_samples = 2 * most - 1});
    products.begin(gradients, kernels);
    for (const std::int64_t rows : {most - 1, most})
      EXPECT_EQ(products.wants({.rows = rows, .inputs = 4096, .outputs = 4096}, gradients.data()), most == 256);
  }
}

}  // namespace
}  // namespace holdfast::compute
