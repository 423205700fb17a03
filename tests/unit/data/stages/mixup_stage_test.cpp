#include "data/stages/mixup_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "holdfast/base/error.h"
#include "holdfast/data/dataset.h"
#include "support/thrown.h"
#include "unit/data/support/loaded.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

// Sample i has the feature i and the one-hot target of i.
Dataset one_hot_numbers(std::int64_t size) {
  Tensor features(Shape{size, 1});
  Tensor targets(Shape{size, size});
  for (std::int64_t i = 0; i < size; ++i) {
    features.sample(i)[0] = static_cast<float>(i);
    targets.sample(i)[static_cast<std::size_t>(i)] = 1;
  }
  return from_tensors(std::move(features), std::move(targets));
}

}  // namespace

TEST(Mixup, GivesInputsAndTargetsTheSameShares) {
  const Dataset data = one_hot_numbers(6).mixup(1.0F);
  int mixed = 0;
  for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
    for (std::int64_t position = 0; position < 6; ++position) {
      const std::vector<float> row = loaded(data, 5, epoch, position);
      float sum = 0;
      float feature = 0;
      for (std::size_t i = 0; i < 6; ++i) {
        sum += row[1 + i];
        feature += row[1 + i] * static_cast<float>(i);
      }
      // Shares are rounded once, features up to 5 twice.
      EXPECT_NEAR(sum, 1, 1e-6);
      EXPECT_NEAR(row[0], feature, 2e-6);
      EXPECT_GT(row[1 + static_cast<std::size_t>(position)], 0);
      mixed += row[1 + static_cast<std::size_t>(position)] < 1 ? 1 : 0;
    }
  }

  // A sample is its own partner once in six times.
  EXPECT_GT(mixed, 80);
  EXPECT_LT(mixed, 120);
}

TEST(Mixup, DrawsByEpochAndSampleWhateverFollows) {
  const Dataset data = one_hot_numbers(30).mixup(0.4F);

  EXPECT_EQ(loaded(data.skip(7), 1, 2, 3), loaded(data, 1, 2, 10));
  EXPECT_NE(loaded(data, 1, 2, 10), loaded(data, 1, 3, 10));
  EXPECT_NE(data.description(), one_hot_numbers(30).description());
  EXPECT_NE(data.description(), one_hot_numbers(30).mixup(0.5F).description());
}

TEST(Mixup, DrawsSharesOfTheBetaDistribution) {
  for (const double alpha : {0.1, 1.0, 4.0}) {
    Random random(1, Purpose::user, 0, 0);
    constexpr int kDraws = 20'000;
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < kDraws; ++i) {
      const double share = draw_share(alpha, random);
      ASSERT_TRUE(share >= 0 && share <= 1);
      sum += share;
      squares += share * share;
    }
    const double mean = sum / kDraws;

    // The deviation of the mean is below 0.5 / sqrt(20,000) = 0.0035; that of the variance is smaller still.
    EXPECT_NEAR(mean, 0.5, 0.015);
    EXPECT_NEAR(squares / kDraws - mean * mean, 1 / (4 * (2 * alpha + 1)), 0.015);
  }
}

TEST(Mixup, StaysFiniteForTheSmallestAlpha) {
  const Dataset data = one_hot_numbers(5).mixup(1e-30F);

  for (std::int64_t i = 0; i < 5; ++i) {
    for (const float value : loaded(data, 0, 0, i)) EXPECT_TRUE(std::isfinite(value));
  }
}

TEST(Mixup, KeepsSampleWeights) {
  const Dataset data =
      from_tensors({{"x", Tensor(Shape{2, 1}, {1, 2})}}, {{"y", Tensor(Shape{2, 1}, {3, 4})}}, Tensor(Shape{2}, {5, 7}))
          .mixup();
  for (std::int64_t epoch = 0; epoch < 10; ++epoch) EXPECT_EQ(loaded(data, 0, epoch, 1).back(), 7);
}

TEST(Mixup, RefusesNumbersOfClassesAndIntegers) {
  const auto refused = [](const auto& action, const std::string& reason) {
    try {
      action();
      ADD_FAILURE() << "nothing was wrong; expected: " << reason;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), HasSubstr(reason));
    }
  };
  refused([] { from_tensors(Tensor(Shape{2, 1}), Tensor(Shape{2})).mixup(); }, "may be the number of a class");
  refused(
      [] {
        from_tensors({{"ids", Tensor(Shape{2, 1}, std::vector<std::int32_t>{1, 2})}}, {{"y", Tensor(Shape{2, 1})}})
            .mixup();
      },
      "\"ids\"");
  refused([] { one_hot_numbers(2).mixup(0); }, "alpha");
  refused([] { one_hot_numbers(2).mixup(NAN); }, "alpha");
}

// Sample i is a picture of pixels i + 1 with the one-hot target of i.
static Dataset flat_pictures(std::int64_t size, const Shape& shape) {
  Tensor features(shape.with_batch(size));
  Tensor targets(Shape{size, size});
  for (std::int64_t i = 0; i < size; ++i) {
    std::ranges::fill(features.sample(i), static_cast<float>(i + 1));
    targets.sample(i)[static_cast<std::size_t>(i)] = 1;
  }
  return from_tensors(std::move(features), std::move(targets));
}

TEST(Cutmix, ReplacesARectangleAndSharesTargetsByItsPixels) {
  constexpr std::int64_t kRows = 6, kColumns = 8, kSize = 5;
  const Dataset data = flat_pictures(kSize, Shape{kRows, kColumns, 1}).cutmix();
  int mixed = 0;
  for (std::int64_t epoch = 0; epoch < 40; ++epoch) {
    for (std::int64_t position = 0; position < kSize; ++position) {
      const std::vector<float> row = loaded(data, 5, epoch, position);
      const std::span<const float> pixels = std::span(row).first(kRows * kColumns);
      const std::span<const float> targets = std::span(row).subspan(kRows * kColumns);
      const auto own = static_cast<float>(position + 1);
      std::int64_t changed = 0, first_row = kRows, last_row = -1, first_column = kColumns, last_column = -1;
      for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
        if (pixels[static_cast<std::size_t>(i)] == own) continue;
        ++changed;
        first_row = std::min(first_row, i / kColumns), last_row = std::max(last_row, i / kColumns);
        first_column = std::min(first_column, i % kColumns), last_column = std::max(last_column, i % kColumns);
      }
      // The pixels of the partner fill a rectangle.
      if (changed > 0) {
        EXPECT_EQ(changed, (last_row - first_row + 1) * (last_column - first_column + 1));
      }
      mixed += changed > 0 ? 1 : 0;
      const float share = 1 - static_cast<float>(changed) / (kRows * kColumns);
      EXPECT_NEAR(targets[static_cast<std::size_t>(position)], share, 1e-6);
      EXPECT_NEAR(std::accumulate(targets.begin(), targets.end(), 0.0F), 1, 1e-6);
    }
  }

  // A partner is another sample four times in five, and few rectangles are empty.
  EXPECT_GT(mixed, 120);
}

TEST(Cutmix, DrawsByEpochAndSampleWhateverFollows) {
  const Dataset data = flat_pictures(30, Shape{4, 4, 2}).cutmix(0.7F);

  EXPECT_EQ(loaded(data.skip(7), 1, 2, 3), loaded(data, 1, 2, 10));
  EXPECT_NE(loaded(data, 1, 2, 10), loaded(data, 1, 3, 10));
  EXPECT_NE(data.description(), flat_pictures(30, Shape{4, 4, 2}).mixup(0.7F).description());
}

TEST(Cutmix, MixesBytesAndRefusesOtherSamples) {
  const Dataset bytes =
      from_tensors({{"x", Tensor(Shape{2, 2, 2, 1}, std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6, 7, 8})}},
                   {{"y", Tensor(Shape{2, 2}, {1, 0, 0, 1})}});
  std::set<std::vector<float>> found;
  for (std::int64_t epoch = 0; epoch < 50; ++epoch) found.insert(loaded(bytes.cutmix(), 0, epoch, 0));
  EXPECT_GT(found.size(), 3U);

  EXPECT_THAT(sentence_thrown_by([] { one_hot_numbers(2).cutmix(); }), HasSubstr("one picture [height, width"));
  EXPECT_THAT(sentence_thrown_by([] { flat_pictures(2, Shape{2, 2, 1}).cutmix(0); }), HasSubstr("cutmix(): alpha"));
}

}  // namespace holdfast
