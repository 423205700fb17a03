#include "holdfast/data/picture_policies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/data/dataset.h"
#include "holdfast/data/picture_colors.h"
#include "support/thrown.h"
#include "unit/data/support/loaded.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

std::vector<float> policy_picture(std::int64_t channels) {
  std::vector<float> pixels;
  for (std::int64_t i = 0; i < 16 * channels; ++i) pixels.push_back(static_cast<float>((i * 29) % 64) / 63.0F);
  return pixels;
}

Dataset policy_data(std::int64_t channels, std::int64_t samples = 1) {
  std::vector<float> all;
  for (std::int64_t i = 0; i < samples; ++i) {
    const std::vector<float> one = policy_picture(channels);
    all.insert(all.end(), one.begin(), one.end());
  }
  return from_tensors(Tensor(Shape{samples, 4, 4, channels}, all), Tensor(Shape{samples}));
}

std::vector<float> policy_pixels(const Dataset& data, std::int64_t epoch, std::int64_t position = 0) {
  std::vector<float> row = loaded(data, 3, epoch, position);
  row.resize(data.input_layout().words());
  return row;
}

// Those that draw nothing must appear among the results of a policy of one change.
TEST(RandAugment, GivesWhatItsChangesGiveAlone) {
  const Dataset data = policy_data(3).map(rand_augment({.changes = 1, .strength = 0.5F}));
  std::set<std::vector<float>> found;
  for (std::int64_t epoch = 0; epoch < 200; ++epoch) found.insert(policy_pixels(data, epoch));

  EXPECT_GT(found.size(), 100U);
  for (const PictureChange& change : {auto_contrast(), equalization(), random_posterization(4, 4)}) {
    EXPECT_TRUE(found.contains(policy_pixels(policy_data(3).map(change), 0))) << change.name;
  }
}

TEST(RandAugment, LeavesChangesOfColorsOutWithoutColors) {
  const Dataset data = policy_data(1).map(rand_augment({.changes = 3, .strength = 1}));

  for (std::int64_t epoch = 0; epoch < 100; ++epoch) {
    for (const float pixel : policy_pixels(data, epoch)) EXPECT_TRUE(std::isfinite(pixel));
  }
}

TEST(PicturePolicies, DrawByEpochAndSampleAlone) {
  for (const PictureChange& change : {rand_augment(), aug_mix()}) {
    const Dataset data = policy_data(3, 4).map(change);

    EXPECT_EQ(policy_pixels(data.skip(1), 2, 2), policy_pixels(data, 2, 3)) << change.name;
    EXPECT_NE(policy_pixels(data, 1, 2), policy_pixels(data, 3, 2)) << change.name;
  }
  EXPECT_NE(rand_augment({.strength = 0.1F}).name, rand_augment({.strength = 0.2F}).name);
  EXPECT_NE(aug_mix({.alpha = 1}).name, aug_mix({.alpha = 2}).name);
}

// The weights of the chains and the share of the picture sum to 1. A picture of zeros stays zero in every change but
// inversion and brightness, so a picture on which no change has an effect shows the sum.
TEST(AugMix, GivesAMeanOfThePictureAndItsChains) {
  const Dataset flat = from_tensors(Tensor(Shape{1, 4, 4, 1}, std::vector<float>(16, 1.0F)), Tensor(Shape{1}));
  const Dataset data = flat.map(aug_mix({.strength = 0}));

  for (std::int64_t epoch = 0; epoch < 100; ++epoch) {
    for (const float pixel : policy_pixels(data, epoch)) EXPECT_LE(pixel, 1.0F);
  }
  const Dataset colored = policy_data(3).map(aug_mix());
  std::set<std::vector<float>> found;
  for (std::int64_t epoch = 0; epoch < 50; ++epoch) {
    const std::vector<float> pixels = policy_pixels(colored, epoch);
    for (const float pixel : pixels) EXPECT_TRUE(pixel >= 0 && pixel <= 1);
    found.insert(pixels);
  }
  EXPECT_GT(found.size(), 40U);
}

TEST(PicturePolicies, KeepBytesAsBytes) {
  const Dataset bytes = from_tensors({{"picture", Tensor(Shape{1, 4, 4, 3}, std::vector<std::uint8_t>(48, 200))}},
                                     {{"label", Tensor(Shape{1})}});

  for (const PictureChange& change : {rand_augment(), aug_mix()}) {
    const Dataset data = bytes.map(change);
    EXPECT_EQ(data.inputs()[0].dtype, DType::u8);
    EXPECT_EQ(loaded(data, 1, 2, 0), loaded(data, 1, 2, 0));
  }
}

TEST(PicturePolicies, RefuseWhatCanNeverWork) {
  EXPECT_THAT(sentence_thrown_by([] { rand_augment({.changes = 0}); }), HasSubstr("changes is 1 to 100, not 0"));
  EXPECT_THAT(sentence_thrown_by([] { rand_augment({.strength = 2}); }), HasSubstr("strength"));
  EXPECT_THAT(sentence_thrown_by([] { aug_mix({.chains = 101}); }), HasSubstr("chains"));
  EXPECT_THAT(sentence_thrown_by([] { aug_mix({.depth = 0}); }), HasSubstr("depth"));
  EXPECT_THAT(sentence_thrown_by([] { aug_mix({.alpha = NAN}); }), HasSubstr("alpha"));
  EXPECT_THAT(sentence_thrown_by([] { policy_data(3).map(rand_augment({.max_value = 0})); }), HasSubstr("max_value"));
}

}  // namespace
}  // namespace holdfast
