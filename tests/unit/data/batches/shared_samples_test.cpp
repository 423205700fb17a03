// What fit() says about validation on samples that are trained on: found from the stages, compared with
// real draws.

#include "data/batches/shared_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "data/stages/stage.h"
#include "holdfast/data/idx.h"
#include "unit/data/support/idx_writer.h"
#include "unit/data/support/numbers.h"

namespace holdfast {
namespace {

void keep_sample(Sample, Random&) {}
void make_nothing(std::span<const float>, std::span<float>, Random&) {}

std::int64_t count_shared(const Dataset& training, const Dataset& validation) {
  const auto shared = shared_samples(training, validation);
  return shared ? shared->shared : 0;
}

bool are_mixed_by_shuffle(const Dataset& training, const Dataset& validation) {
  return shared_samples(training, validation).value().are_mixed_by_shuffle;
}

// The samples of the source that batches of `dataset` hold in these epochs.
std::set<std::int64_t> met(const Dataset& dataset, std::int64_t epochs, std::uint64_t seeds) {
  const std::int64_t size = dataset.batch_size() == 0 || dataset.batches() * dataset.batch_size() > dataset.size()
                                ? dataset.size()
                                : dataset.batches() * dataset.batch_size();
  std::set<std::int64_t> samples;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
      for (std::int64_t i = 0; i < size; ++i) samples.insert(dataset.last_stage()->source_position(seed, epoch, i));
    }
  }
  return samples;
}

TEST(SharedSamples, DoNotExistBetweenTakeAndSkip) {
  const Dataset data = numbers(100);

  EXPECT_FALSE(shared_samples(data.skip(20), data.take(20)));
  EXPECT_FALSE(shared_samples(data.skip(20).shuffle(), data.take(20)));
  EXPECT_FALSE(shared_samples(data.skip(20).shuffle(7).repeat(2).batch(3), data.take(20).shuffle().batch(8)));
  EXPECT_FALSE(shared_samples(data.take(60).skip(30).shuffle(), data.skip(60)));
}

// A common way to write a split.
TEST(SharedSamples, AreThoseThatAShuffleBringsOverTheBorder) {
  const Dataset shuffled = numbers(100).shuffle();

  const auto shared = shared_samples(shuffled.skip(20), shuffled.take(20));

  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->shared, 100);
  EXPECT_EQ(shared->of_validation, 100);
  EXPECT_TRUE(shared->are_mixed_by_shuffle);
}

TEST(SharedSamples, AreSeenIfOneSideIsShuffled) {
  const Dataset data = numbers(100);

  EXPECT_EQ(count_shared(data.shuffle().skip(20), data.take(20)), 20);
  EXPECT_EQ(count_shared(data.skip(20), data.shuffle().take(20)), 80);
  EXPECT_TRUE(are_mixed_by_shuffle(data.skip(20), data.shuffle().take(20)));
}

TEST(SharedSamples, AreThoseOfTheWindowsAtTheBorder) {
  const Dataset windows = numbers(100).shuffle(30);

  EXPECT_EQ(count_shared(windows.skip(40), windows.take(40)), 30);
  EXPECT_FALSE(shared_samples(windows.skip(60), windows.take(60)));
  EXPECT_EQ(count_shared(windows.skip(95), windows.take(95)), 10);
}

TEST(SharedSamples, AreThoseOfOverlappingRanges) {
  const Dataset data = numbers(100);

  EXPECT_EQ(count_shared(data, data), 100);
  EXPECT_EQ(count_shared(data.take(30), data.skip(20)), 10);
  EXPECT_FALSE(are_mixed_by_shuffle(data.take(30), data.skip(20)));
  EXPECT_FALSE(are_mixed_by_shuffle(data.shuffle(), data.take(10)));
}

TEST(SharedSamples, AreThoseOfAnyRoundOfARepeat) {
  const Dataset data = numbers(10);

  EXPECT_EQ(count_shared(data.repeat(3).take(12), data.skip(5)), 5);
  EXPECT_EQ(count_shared(data.repeat(3).skip(8).take(4), data.take(5)), 2);
  EXPECT_EQ(count_shared(data.take(5).repeat(4).shuffle(), data.skip(4)), 1);
  EXPECT_FALSE(shared_samples(data.take(5).repeat(4).shuffle(), data.skip(5)));
}

TEST(SharedSamples, DoNotExistBetweenPartsOfASplit) {
  const auto [rest, test] = numbers(100).split(0.2);
  const auto [training, validation] = rest.map(keep_sample).split(0.25);

  EXPECT_FALSE(shared_samples(rest, test));
  EXPECT_FALSE(shared_samples(training.shuffle().repeat(2).batch(7), validation.shuffle().batch(3)));
  EXPECT_FALSE(shared_samples(training.shuffle(), test));
  EXPECT_EQ(count_shared(rest, validation), 20);
}

TEST(SharedSamples, AreThoseOfSplitsWithOtherSeeds) {
  const Dataset data = numbers(100);
  const Dataset training = data.split(0.5).training;
  const Dataset validation = data.split(0.5, {.seed = 1}).validation;

  EXPECT_GT(count_shared(training, validation), 0);
  EXPECT_FALSE(are_mixed_by_shuffle(training, validation));
}

TEST(SharedSamples, LeaveOutSamplesThatNoBatchHolds) {
  const Dataset data = numbers(25);

  EXPECT_FALSE(shared_samples(data.batch(10, {.drop_remainder = true}), data.skip(20).batch(2)));
  EXPECT_EQ(count_shared(data.batch(10), data.skip(20).batch(2)), 5);
  EXPECT_EQ(count_shared(data.shuffle().batch(10, {.drop_remainder = true}), data.skip(20).batch(2)), 5);
}

TEST(SharedSamples, AreFoundForTwoObjectsWithTheSameContent) {
  EXPECT_EQ(count_shared(numbers(10), numbers(10).skip(7)), 3);
  EXPECT_FALSE(shared_samples(numbers(10), numbers(11)));
  EXPECT_FALSE(shared_samples(numbers(10), from_tensors(Tensor{Shape{10, 2}}, Tensor{Shape{10}})));
}

TEST(SharedSamples, AreFoundForAFileThatIsReadTwice) {
  const TemporaryFolder folder;
  const std::string images = folder / "images";
  const std::string labels = folder / "labels";
  write_plain(images, idx_bytes({4, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}));
  write_plain(labels, idx_bytes({4}, {1, 0, 1, 0}));

  EXPECT_EQ(count_shared(read_idx(images, labels).shuffle(), read_idx(images, labels, {.scale = 1}).take(2)), 2);
  EXPECT_FALSE(shared_samples(read_idx(images, labels).skip(2), read_idx(images, labels).take(2)));
}

TEST(SharedSamples, AreSeenAfterMaps) {
  const Dataset data = numbers(100);

  EXPECT_EQ(count_shared(data.shuffle().map(keep_sample).skip(20), data.take(20).map(Shape{3}, make_nothing)), 20);
  EXPECT_EQ(count_shared(data.map(Shape{3}, make_nothing).skip(10), data.take(20).map(Shape{3}, make_nothing)), 10);
  EXPECT_EQ(count_shared(numbers(100).map(keep_sample).skip(10), numbers(100).take(20).map(Shape{3}, make_nothing)),
            10);
}

// Two files of samples that are read by their numbers.
TEST(SharedSamples, AreNotTheNumbersByWhichMapsReadSamples) {
  const auto file = [](const std::string& name) { return numbers(100).map(Shape{3}, make_nothing, name); };

  EXPECT_FALSE(shared_samples(file("a.bin"), file("b.bin")));
  EXPECT_FALSE(shared_samples(file(""), file("")));
}

// One file that two data sets read.
TEST(SharedSamples, AreThoseThatMapsOfOneNameRead) {
  const auto file = [] { return numbers(100).map(Shape{3}, make_nothing, "a.bin"); };

  EXPECT_TRUE(shared_samples(file().shuffle().take(60), file().shuffle().skip(60)));
  EXPECT_FALSE(shared_samples(file().take(60).shuffle(), file().skip(60).shuffle()));
}

// Compares with what the stages draw: no shared sample is missed, and no other one is reported.
TEST(SharedSamples, AreThoseThatOccurInSomeEpoch) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Random random(seed, Purpose::user, 0, 0);
    const Dataset source = numbers(12);
    const auto draw_dataset = [&] {
      Dataset data = source;
      bool is_mixed = false;
      for (std::uint64_t stages = random.below(5); stages > 0; --stages) {
        const auto number = static_cast<std::int64_t>(1 + random.below(6));
        switch (random.below(6)) {
          case 0:
            data = data.take(number + 3);
            break;
          case 1:
            data = data.skip(number / 2);
            break;
          case 2:
            if (data.size() <= 24) data = data.repeat(2), is_mixed = true;
            break;
          case 3:
            if (!is_mixed && data.size() > 1) data = data.split(1, {.seed = seed}).training;
            break;
          case 4:
            data = data.map(keep_sample);
            break;
          default:
            data = data.shuffle(number);
            is_mixed = true;
        }
      }
      return data;
    };
    const Dataset training = draw_dataset();
    const Dataset validation = draw_dataset();

    std::set<std::int64_t> both;
    const std::set<std::int64_t> trained = met(training, 40, 4);
    for (const std::int64_t sample : met(validation, 40, 4)) {
      if (trained.contains(sample)) both.insert(sample);
    }

    EXPECT_EQ(count_shared(training, validation), static_cast<std::int64_t>(both.size()))
        << "seed " << seed << ": " << training.description() << " and " << validation.description();
  }
}

}  // namespace
}  // namespace holdfast
