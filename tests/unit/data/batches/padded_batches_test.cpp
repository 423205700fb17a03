#include "data/batches/padded_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/batches/batch_loader.h"
#include "data/batches/shared_samples.h"
#include "holdfast/core/random.h"
#include "support/thrown.h"
#include "unit/data/support/loaded.h"
#include "unit/data/support/numbers.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<float> weights_of(const Dataset& data, std::int64_t epoch) {
  std::vector<float> weights;
  for (std::int64_t i = 0; i < data.size(); ++i) weights.push_back(loaded(data, 0, epoch, i).back());
  return weights;
}

Dataset weighted_numbers() {
  return from_tensors({{"x", Tensor(Shape{3, 1}, std::vector<float>{7, 8, 9})}}, {{"y", Tensor(Shape{3})}},
                      Tensor(Shape{3}, std::vector<float>{2, 0.5F, 4}));
}

TEST(PaddedBatches, FillTheLastBatchWithCopiesOfWeightZero) {
  const Dataset data = numbers(7).batch(3, {.pad_remainder = true});

  EXPECT_EQ(data.size(), 9);
  EXPECT_EQ(data.batches(), 3);
  EXPECT_EQ(data.padding(), 2);
  EXPECT_EQ(samples_of_batch(data, 2), 3);
  EXPECT_THAT(first_features(data, 0), ElementsAre(0, 1, 2, 3, 4, 5, 6, 6, 6));
  EXPECT_THAT(weights_of(data, 0), ElementsAre(1, 1, 1, 1, 1, 1, 1, 0, 0));
}

TEST(PaddedBatches, KeepTheWeightsThatSamplesHave) {
  EXPECT_THAT(weights_of(weighted_numbers().batch(2, {.pad_remainder = true}), 0), ElementsAre(2, 0.5F, 4, 0));
}

TEST(PaddedBatches, LeaveDataThatFillsItsBatchesAsItIs) {
  const Dataset padded = numbers(6).batch(3, {.pad_remainder = true});

  EXPECT_EQ(padded.description(), numbers(6).batch(3).description());
  EXPECT_EQ(padded.padding(), 0);
}

// Whatever the order of an epoch, each of its samples has its weight once.
TEST(PaddedBatches, HoldEachSampleOnceInAnyOrder) {
  Random random(5, Purpose::user, 0, 0);
  for (int trial = 0; trial < 50; ++trial) {
    const auto size = static_cast<std::int64_t>(1 + random.below(40));
    const auto batch = static_cast<std::int64_t>(1 + random.below(20));
    const Dataset data = numbers(size).shuffle().batch(batch, {.pad_remainder = true});
    std::vector<std::int64_t> seen(static_cast<std::size_t>(size));
    for (std::int64_t i = 0; i < data.size(); ++i) {
      const std::vector<float> row = loaded(data, 1, 3, i);
      if (i < data.size() - data.padding()) ++seen[static_cast<std::size_t>(row[0])];
    }

    EXPECT_EQ(data.size() % batch, 0);
    EXPECT_LT(data.padding(), batch);
    EXPECT_THAT(seen, testing::Each(1));
  }
}

TEST(PaddedBatches, GoBackToTheSamplesWithoutPadding) {
  const Dataset plain = numbers(7).batch(3).prefetch(2);
  const Dataset padded = numbers(7).batch(3, {.pad_remainder = true}).prefetch(2);

  EXPECT_EQ(without_padding(padded).description(), plain.description());
  EXPECT_EQ(without_padding(padded).prefetch_depth(), 2);
  EXPECT_EQ(without_padding(plain).description(), plain.description());
}

TEST(PaddedBatches, ShareTheSamplesThatTheyCopy) {
  const Dataset data = numbers(7);

  EXPECT_FALSE(shared_samples(data.take(4).batch(4), data.skip(4).batch(2, {.pad_remainder = true})).has_value());
  const auto shared = shared_samples(data.skip(6).batch(4), data.batch(2, {.pad_remainder = true}));
  ASSERT_TRUE(shared.has_value());
  EXPECT_EQ(shared->shared, 1);
}

TEST(PaddedBatches, AreRefusedWithOptionsThatContradictThem) {
  EXPECT_THAT(sentence_thrown_by([] { numbers(7).batch(3, {.drop_remainder = true, .pad_remainder = true}); }),
              HasSubstr("set one of"));
  EXPECT_THAT(sentence_thrown_by([] { numbers(7).keep_on_device().batch(3, {.pad_remainder = true}); }),
              HasSubstr("keep_on_device()"));
  EXPECT_EQ(code_thrown_by([] { numbers(7).batch(3, {.pad_remainder = true}).keep_on_device(); }),
            ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace holdfast
