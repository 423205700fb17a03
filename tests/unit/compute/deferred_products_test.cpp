#include "compute/deferred_products.h"

#include <gtest/gtest.h>

#include <numeric>

namespace holdfast::compute {
namespace {

// The least that is worth it: 2^20 numbers.
constexpr DenseShape kLarge = {.rows = 3, .inputs = 1024, .outputs = 1024};
constexpr DeferralLimits kFewSamples = {.most_samples = 3, .all_samples = 6};

TEST(DeferralLimits, AllowLargeKernelsForFewSamples) {
  EXPECT_TRUE(kFewSamples.allow(kLarge));
  EXPECT_FALSE(kFewSamples.allow({.rows = 3, .inputs = 1024, .outputs = 1023}));
  // 256 samples of a shard, and copies of half of the gradient.
  EXPECT_TRUE((DeferralLimits{.most_samples = 256, .all_samples = 256}.allow(kLarge)));
  EXPECT_FALSE((DeferralLimits{.most_samples = 257, .all_samples = 257}.allow({.inputs = 4096, .outputs = 4096})));
  EXPECT_FALSE((DeferralLimits{.most_samples = 3, .all_samples = 257}.allow(kLarge)));
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

  EXPECT_TRUE(products.take(kUneven, input.data(), output_gradient.data(), gradients.data() + 1'200'000));
  EXPECT_TRUE(products.take(kUneven, input.data(), output_gradient.data(), gradients.data() + 16));

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

TEST(DeferredProducts, TakeNothingElse) {
  const std::vector<std::size_t> kernels = {64};
  const std::vector<float> gradients(64 + 1024 * 1024), elsewhere(1024 * 1024), numbers(3 * 1024);
  const auto takes = [&](DeferredProducts& products, const DenseShape& shape, const float* gradient) {
    return products.take(shape, numbers.data(), numbers.data(), gradient);
  };
  DeferredProducts products;
  EXPECT_FALSE(takes(products, kLarge, gradients.data() + 64)) << "no shard has begun";
  products.reset(kFewSamples);
  EXPECT_FALSE(takes(products, kLarge, gradients.data() + 64)) << "the layers have not named their kernels";
  products.begin(gradients, kernels);

  EXPECT_FALSE(takes(products, kLarge, elsewhere.data()));
  EXPECT_FALSE(takes(products, kLarge, gradients.data()));
  EXPECT_FALSE(takes(products, kLarge, gradients.data() + gradients.size()));
  EXPECT_FALSE(takes(products, {.rows = 3, .inputs = 8, .outputs = 8}, gradients.data() + 64));
  EXPECT_TRUE(products.products().empty());
  EXPECT_TRUE(takes(products, kLarge, gradients.data() + 64));
  products.reset(kFewSamples);
  EXPECT_TRUE(products.products().empty());
}

}  // namespace
}  // namespace holdfast::compute
