#include "data/batches/gathered_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "holdfast/core/random.h"
#include "support/temporary_folder.h"
#include "unit/data/support/loaded.h"
#include "unit/data/support/numbers.h"

namespace holdfast {
namespace {

// A chain of stages that choose and order samples.
Dataset chosen_numbers(Random& random) {
  Dataset data = numbers(static_cast<std::int64_t>(20 + random.below(60)));
  if (random.below(2) == 0) data = data.split(0.3).training;
  for (int stage = 0; stage < 3; ++stage) {
    switch (random.below(4)) {
      case 0:
        data = data.shuffle(static_cast<std::int64_t>(1 + random.below(30)));
        break;
      case 1:
        data = data.skip(static_cast<std::int64_t>(random.below(3)));
        break;
      case 2:
        data = data.repeat(2);
        break;
      default:
        data = data.take(data.size() - 1);
        break;
    }
  }
  return data;
}

}  // namespace

TEST(GatheredRows, AreTheRowsThatStagesLoad) {
  Random random(8, Purpose::user, 0, 0);
  for (int trial = 0; trial < 100; ++trial) {
    const Dataset data = chosen_numbers(random);
    const GatheredRows rows(*data.last_stage());
    ASSERT_TRUE(rows.are_there());
    const auto first = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(data.size())));
    const auto count = 1 + random.below(static_cast<std::uint64_t>(data.size() - first));
    std::vector<float> features(count * 2);
    std::vector<float> targets(count);

    rows.gather(5, 2, first, features, targets);

    for (std::size_t i = 0; i < count; ++i) {
      const std::vector<float> expected = loaded(data, 5, 2, first + static_cast<std::int64_t>(i));
      EXPECT_EQ((std::vector<float>{features[2 * i], features[2 * i + 1], targets[i]}), expected) << data.description();
    }
  }
}

// Rows are copied line by line, several side by side, and those that are left one by one.
TEST(GatheredRows, AreWholeAtAnyWidthAndNumber) {
  for (const std::int64_t width : {1, 15, 16, 17, 40, 784, 1025}) {
    Tensor features(Shape{23, width});
    float value = 0;
    for (std::int64_t i = 0; i < 23; ++i) {
      for (float& element : features.sample(i)) element = value++;
    }
    const Dataset data = from_tensors(features, Tensor(Shape{23, 3})).shuffle();
    const GatheredRows rows(*data.last_stage());
    for (const std::size_t count : {1, 3, 4, 5, 8, 23}) {
      std::vector<float> gathered(count * static_cast<std::size_t>(width));
      std::vector<float> targets(count * 3, -1.0F);

      rows.gather(5, 2, 0, gathered, targets);

      for (std::size_t i = 0; i < count; ++i) {
        const std::vector<float> expected = loaded(data, 5, 2, static_cast<std::int64_t>(i));
        const auto row = std::span(gathered).subspan(i * static_cast<std::size_t>(width), width);
        EXPECT_TRUE(std::ranges::equal(row, std::span(expected).first(width))) << width << ", sample " << i;
      }
      EXPECT_EQ(targets, std::vector<float>(count * 3, 0.0F));
    }
  }
}

TEST(GatheredRows, AreNotThereForSamplesThatAreMadeOrChecked) {
  const TemporaryFolder folder;

  EXPECT_FALSE(GatheredRows(*numbers(5).map(add_noise).last_stage()).are_there());
  EXPECT_FALSE(GatheredRows(*numbers(5).cache(folder / "cache").last_stage()).are_there());
  EXPECT_FALSE(GatheredRows(*numbers(5).window(2).last_stage()).are_there());
}

}  // namespace holdfast
