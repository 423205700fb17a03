#include "holdfast/data/adapt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast {
namespace {

using testing::ElementsAre;

TEST(Adapt, FitsALayerToWhatADataSetGives) {
  const Dataset data = from_tensors(Tensor({3, 2}, {1, 2, 3, 4, 5, 6}), Tensor({3, 1}, {0, 0, 0}));
  const auto doubled = data.map([](Sample sample, Random&) {
    for (float& feature : sample.features) feature *= 2;
  });

  const Normalization layer = adapt(Normalization{}, doubled.batch(2));

  EXPECT_THAT(layer.options().mean, ElementsAre(6, 8));
  EXPECT_THAT(layer.options().variance, ElementsAre(static_cast<float>(32.0 / 3), static_cast<float>(32.0 / 3)));
  EXPECT_THAT(adapt(Normalization{}, data).options().mean, ElementsAre(3, 4));
}

TEST(Adapt, PassesOverThePaddingOfBatches) {
  const Dataset data = from_tensors(Tensor({3, 2}, {1, 2, 3, 4, 5, 6}), Tensor({3, 1}, {0, 0, 0}));

  EXPECT_THAT(adapt(Normalization{}, data.batch(2, {.pad_remainder = true})).options().mean, ElementsAre(3, 4));
}

}  // namespace
}  // namespace holdfast
