// However batches are loaded (in this thread, ahead, by several threads, from a device or sent to one),
// they are the same batches in the same order. A fake feed stands in for a device.

#include "data/batches/batch_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <latch>
#include <stdexcept>
#include <utility>

#include "holdfast/base/error.h"
#include "support/comes_true.h"
#include "unit/data/support/numbers.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Values = std::vector<float>;

// The content of a batch, with copies instead of views.
struct Seen {
  std::int64_t epoch = 0;
  std::int64_t index = 0;
  std::int64_t samples = 0;
  std::vector<std::int64_t> first_samples;
  std::vector<Values> features;  // of each shard
  std::vector<Values> targets;

  friend bool operator==(const Seen&, const Seen&) = default;
};

Seen seen(const Batch& batch) {
  Seen result{.epoch = batch.epoch,
              .index = batch.index,
              .samples = batch.samples,
              .first_samples = {},
              .features = {},
              .targets = {}};
  for (const ShardSlice& shard : batch.shards) {
    EXPECT_EQ(static_cast<std::int64_t>(shard.features.size()), 2 * shard.samples);
    EXPECT_EQ(static_cast<std::int64_t>(shard.targets.size()), shard.samples);
    result.first_samples.push_back(shard.first_sample);
    result.features.emplace_back(shard.features.begin(), shard.features.end());
    result.targets.emplace_back(shard.targets.begin(), shard.targets.end());
  }
  return result;
}

std::vector<Seen> read_all(BatchLoader& loader) {
  std::vector<Seen> all;
  while (const std::optional<Batch> batch = loader.next()) all.push_back(seen(*batch));
  return all;
}

struct Part {
  int shards = 1;
  int first = 0;
  int end = 1;
};

struct Range {
  std::int64_t epoch = 0;
  std::int64_t batch = 0;
  std::int64_t end_epoch = 1;
};

std::vector<Seen> read_all(const Dataset& dataset, Part part = {}, Range range = {}) {
  BatchLoader loader(dataset, 7, part.shards, part.first, part.end, range.epoch, range.batch, range.end_epoch);
  return read_all(loader);
}

// Like the feed of a device, but on the host: it has two places, and begin() overwrites the rows that were taken before
// the last ones.
class HostFeed final : public RowFeed {
 public:
  HostFeed(Values from, std::size_t row_floats) : from_(std::move(from)), row_floats_(row_floats) {}

  void begin(std::span<const std::int64_t> rows) override {
    ASSERT_LT(begun_, taken_ + 2);
    Values& place = places_.at(begun_++ % 2);
    place.resize(rows.size() * row_floats_);
    host_memory().gather(from_, rows, place);
  }
  std::span<const float> take() override {
    EXPECT_LT(taken_, begun_);
    return places_.at(taken_++ % 2);
  }

 private:
  const Values from_;
  const std::size_t row_floats_;
  std::array<Values, 2> places_;
  std::size_t begun_ = 0;
  std::size_t taken_ = 0;
};

SampleFeeds feeds_of_numbers(std::int64_t count) {
  Values features;
  Values targets;
  for (std::int64_t i = 0; i < count; ++i) {
    features.insert(features.end(), {static_cast<float>(i), static_cast<float>(i) + 0.5F});
    targets.push_back(static_cast<float>(-i));
  }
  return {.pinned = {},
          .features = std::make_unique<HostFeed>(features, 2),
          .targets = std::make_unique<HostFeed>(targets, 1)};
}

// Returns the rows themselves, so a loader that overwrites them too early is noticed.
class RowViews final : public RowFeed {
 public:
  RowViews(std::span<const float> rows, std::size_t row_floats) : rows_(rows), row_floats_(row_floats) {}

  void begin(std::span<const std::int64_t> rows) override {
    ASSERT_LT(begun_.size(), 2U);
    const auto first = static_cast<std::size_t>(rows.empty() ? 0 : rows.front());
    for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i], static_cast<std::int64_t>(first + i));
    begun_.push_back(rows_.subspan(first * row_floats_, rows.size() * row_floats_));
  }
  std::span<const float> take() override {
    EXPECT_FALSE(begun_.empty());
    const std::span<const float> taken = begun_.front();
    begun_.pop_front();
    return taken;
  }

 private:
  const std::span<const float> rows_;
  const std::size_t row_floats_;
  std::deque<std::span<const float>> begun_;
};

SampleFeeds row_views(const HostRows& rows) {
  return {.pinned = {},
          .features = std::make_unique<RowViews>(rows.features, 2),
          .targets = std::make_unique<RowViews>(rows.targets, 1)};
}

// How many batches are loaded ahead, and by how many threads.
struct Ahead {
  int depth = 0;
  int threads = 1;
};

class BatchLoading : public testing::TestWithParam<Ahead> {
 protected:
  int depth() const { return GetParam().depth; }
  int threads() const { return GetParam().threads; }
};

TEST_P(BatchLoading, GivesTheBatchesOfEachEpochInOrder) {
  const std::vector<Seen> batches =
      read_all(numbers(5).batch(2).prefetch(depth(), {.threads = threads()}), {}, {.end_epoch = 2});

  ASSERT_EQ(batches.size(), 6U);
  EXPECT_EQ(batches[1].epoch, 0);
  EXPECT_EQ(batches[1].index, 1);
  EXPECT_EQ(batches[1].samples, 2);
  EXPECT_THAT(batches[1].features[0], ElementsAre(2, 2.5F, 3, 3.5F));
  EXPECT_THAT(batches[1].targets[0], ElementsAre(-2, -3));
  EXPECT_EQ(batches[2].samples, 1);
  EXPECT_THAT(batches[2].targets[0], ElementsAre(-4));
  EXPECT_EQ(batches[3].epoch, 1);
  EXPECT_EQ(batches[3].index, 0);
}

TEST_P(BatchLoading, LeavesOutARemainderThatIsDropped) {
  const std::vector<Seen> batches = read_all(
      numbers(5).batch(2, {.drop_remainder = true}).prefetch(depth(), {.threads = threads()}), {}, {.end_epoch = 2});

  ASSERT_EQ(batches.size(), 4U);
  EXPECT_THAT(batches[1].targets[0], ElementsAre(-2, -3));
  EXPECT_EQ(batches[2].epoch, 1);
}

TEST_P(BatchLoading, LoadsTheSamplesOfTheDataSetAtThosePositions) {
  const Dataset dataset = numbers(10).shuffle().map(add_noise).batch(4).prefetch(depth(), {.threads = threads()});

  const std::vector<Seen> batches = read_all(dataset, {}, {.epoch = 3, .end_epoch = 4});

  Values features(2);
  Values targets(1);
  dataset.load(7, 3, 9, {.features = features, .targets = targets});
  EXPECT_EQ(Values(batches.at(2).features[0].begin() + 2, batches[2].features[0].end()), features);
  EXPECT_EQ(batches[2].targets[0][1], targets[0]);
}

TEST_P(BatchLoading, CutsABatchIntoShards) {
  const std::vector<Seen> batches =
      read_all(numbers(10).batch(10).prefetch(depth(), {.threads = threads()}), {.shards = 4, .first = 0, .end = 4});

  EXPECT_THAT(batches.at(0).first_samples, ElementsAre(0, 2, 5, 7));
  EXPECT_THAT(batches[0].targets[1], ElementsAre(-2, -3, -4));
}

TEST_P(BatchLoading, GivesRanksThePartsOfOneBatch) {
  const Dataset dataset = numbers(23).shuffle().map(add_noise).batch(9).prefetch(depth(), {.threads = threads()});
  const std::vector<Seen> whole = read_all(dataset, {.shards = 6, .first = 0, .end = 6}, {.end_epoch = 2});

  std::vector<Seen> together = read_all(dataset, {.shards = 6, .first = 0, .end = 1}, {.end_epoch = 2});
  for (const Part part : {Part{6, 1, 4}, Part{6, 4, 4}, Part{6, 4, 6}}) {
    const std::vector<Seen> other = read_all(dataset, part, {.end_epoch = 2});
    ASSERT_EQ(other.size(), together.size());
    for (std::size_t i = 0; i < other.size(); ++i) {
      EXPECT_EQ(other[i].samples, together[i].samples);
      const auto append = [](auto& all, const auto& more) { all.insert(all.end(), more.begin(), more.end()); };
      append(together[i].first_samples, other[i].first_samples);
      append(together[i].features, other[i].features);
      append(together[i].targets, other[i].targets);
    }
  }

  EXPECT_TRUE(together == whole);
}

TEST_P(BatchLoading, GivesEmptyShardsIfABatchHasFewerSamples) {
  const std::vector<Seen> batches =
      read_all(numbers(2).batch(8).prefetch(depth(), {.threads = threads()}), {.shards = 4, .first = 0, .end = 4});

  EXPECT_THAT(batches.at(0).first_samples, ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(batches[0].targets, ElementsAre(Values{}, Values{0}, Values{}, Values{-1}));
}

TEST_P(BatchLoading, ResumedAtAnyBatchGivesTheSameBatches) {
  const Dataset dataset = numbers(10).shuffle().map(add_noise).batch(4).prefetch(depth(), {.threads = threads()});
  const Part part{.shards = 3, .first = 1, .end = 3};
  const std::vector<Seen> uninterrupted = read_all(dataset, part, {.end_epoch = 3});
  ASSERT_EQ(uninterrupted.size(), 9U);

  for (std::int64_t read = 0; read <= 9; ++read) {
    const std::vector<Seen> rest = read_all(dataset, part, {.epoch = read / 3, .batch = read % 3, .end_epoch = 3});
    EXPECT_TRUE(std::equal(rest.begin(), rest.end(), uninterrupted.begin() + read, uninterrupted.end())) << read;
  }
}

TEST_P(BatchLoading, ContinuesWithTheNextEpochAfterTheLastBatch) {
  const Dataset dataset = numbers(4).batch(2).prefetch(depth(), {.threads = threads()});

  const std::vector<Seen> batches = read_all(dataset, {}, {.epoch = 0, .batch = 2, .end_epoch = 2});

  ASSERT_EQ(batches.size(), 2U);
  EXPECT_EQ(batches[0].epoch, 1);
  EXPECT_EQ(batches[0].index, 0);
}

TEST_P(BatchLoading, TakesTheSameBatchesFromResidentSamples) {
  const Dataset dataset =
      numbers(23).skip(2).shuffle(8).take(20).repeat(2).batch(9).prefetch(depth(), {.threads = threads()});
  const Dataset in_order = numbers(23).batch(9).prefetch(depth(), {.threads = threads()});
  for (const Dataset& kept : {dataset.keep_on_device(), in_order.keep_on_device()}) {
    ResidentSamples samples(kept, host_memory());
    BatchLoader loader(kept, 7, 4, 1, 4, 0, 1, 3, {.resident = &samples});

    EXPECT_TRUE(read_all(loader) ==
                read_all(kept, {.shards = 4, .first = 1, .end = 4}, {.epoch = 0, .batch = 1, .end_epoch = 3}));
  }
}

TEST_P(BatchLoading, SaysWhereResidentSamplesAre) {
  const Dataset kept = numbers(4).batch(2).prefetch(depth(), {.threads = threads()}).keep_on_device();
  ResidentSamples samples(kept, host_memory());
  BatchLoader from_device(kept, 7, 1, 0, 1, 0, 0, 1, {.resident = &samples});
  BatchLoader from_host(kept, 7, 1, 0, 1, 0, 0, 1);

  EXPECT_TRUE(from_device.next()->is_on_device);
  EXPECT_FALSE(from_host.next()->is_on_device);
}

TEST_P(BatchLoading, StaysAtItsEnd) {
  BatchLoader loader(numbers(2).batch(2).prefetch(depth(), {.threads = threads()}), 7, 1, 0, 1, 0, 0, 1);

  EXPECT_TRUE(loader.next().has_value());
  EXPECT_FALSE(loader.next().has_value());
  EXPECT_FALSE(loader.next().has_value());
}

TEST_P(BatchLoading, EndsAtOnceWithoutSamples) {
  EXPECT_TRUE(read_all(numbers(0).batch(2).prefetch(depth(), {.threads = threads()})).empty());
  EXPECT_TRUE(
      read_all(numbers(3).batch(4, {.drop_remainder = true}).prefetch(depth(), {.threads = threads()})).empty());
  EXPECT_TRUE(read_all(numbers(4).batch(4).prefetch(depth(), {.threads = threads()}), {}, {.epoch = 2, .end_epoch = 2})
                  .empty());
}

TEST_P(BatchLoading, RethrowsAFailureWhenItsBatchIsDue) {
  const Dataset dataset = numbers(6).map([](Sample sample, Random&) {
    if (sample.features[0] == 5) throw std::runtime_error("sample 5 is odd");
  });
  for (const bool is_staged : {false, true}) {
    SampleWays ways;
    if (is_staged) ways.stage = row_views;
    BatchLoader loader(dataset.batch(2).prefetch(depth(), {.threads = threads()}), 7, 1, 0, 1, 0, 0, 1,
                       std::move(ways));

    EXPECT_THAT(seen(*loader.next()).targets[0], ElementsAre(0, -1));
    EXPECT_THAT(seen(*loader.next()).targets[0], ElementsAre(-2, -3));
    EXPECT_THROW(loader.next(), std::runtime_error);
    EXPECT_THROW(loader.next(), std::runtime_error);
  }
}

TEST_P(BatchLoading, LoadsNoFurtherAheadThanAsked) {
  std::atomic<int> loaded_samples = 0;
  const Dataset dataset = numbers(40).map([&](Sample, Random&) { ++loaded_samples; });
  BatchLoader loader(dataset.batch(2).prefetch(depth(), {.threads = threads()}), 7, 1, 0, 1, 0, 0, 1);

  for (int batch = 1; loader.next().has_value(); ++batch) EXPECT_LE(loaded_samples, 2 * (batch + depth()));

  EXPECT_EQ(loaded_samples, 40);
}

TEST_P(BatchLoading, CanBeDestroyedAtAnyTime) {
  const Dataset dataset = numbers(1000).shuffle().batch(10).prefetch(depth(), {.threads = threads()});

  for (int read = 0; read < 5; ++read) {
    BatchLoader loader(dataset, 7, 2, 0, 2, 0, 0, 1000);
    for (int i = 0; i < read; ++i) EXPECT_TRUE(loader.next().has_value());
  }
}

INSTANTIATE_TEST_SUITE_P(, BatchLoading,
                         testing::Values(Ahead{0}, Ahead{1}, Ahead{2}, Ahead{5}, Ahead{1, 2}, Ahead{2, 9}),
                         [](const testing::TestParamInfo<Ahead>& ahead) {
                           return std::to_string(ahead.param.depth) + "ahead_by_" + std::to_string(ahead.param.threads);
                         });

TEST(BatchLoader, GivesTheSameBitsWithAnyNumberOfThreads) {
  const Dataset dataset = numbers(203).shuffle().map(add_noise, "noise").batch(90);
  const Part part{.shards = 6, .first = 1, .end = 5};
  const std::vector<Seen> expected = read_all(dataset, part, {.end_epoch = 2});

  for (const int threads : {1, 2, 3, 8}) {
    EXPECT_TRUE(read_all(dataset.prefetch(2, {.threads = threads}), part, {.end_epoch = 2}) == expected) << threads;
  }
}

// Which numbers of threads are chosen depends on the machine, and no batch depends on them.
TEST(BatchLoader, GivesTheSameBitsWhileItChoosesItsThreads) {
  const Dataset dataset = numbers(203).shuffle().map(add_noise, "noise").batch(20);
  const std::vector<Seen> expected = read_all(dataset, {.shards = 3, .end = 3}, {.end_epoch = 12});
  std::vector<int> chosen;
  BatchLoader loader(dataset.prefetch(3, {.threads = PrefetchOptions::automatic}), 7, 3, 0, 3, 0, 0, 12,
                     {.most_threads = 4, .chose_threads = [&](int threads) { chosen.push_back(threads); }});

  EXPECT_TRUE(read_all(loader) == expected);
  EXPECT_THAT(chosen, testing::Each(testing::AllOf(testing::Ge(1), testing::Le(4))));
}

TEST(BatchLoader, LoadsABatchWithAllItsThreads) {
  std::atomic<int> begun = 0;
  std::atomic<int> alone = 0;
  const auto meet = [&](Sample, Random&) {
    ++begun;
    if (!comes_true([&] { return begun >= 3; })) ++alone;
  };
  BatchLoader loader(numbers(12).map(meet, "meet").batch(12).prefetch(1, {.threads = 3}), 7, 1, 0, 1, 0, 0, 1);

  EXPECT_EQ(loader.next()->samples, 12);
  EXPECT_EQ(alone, 0);
}

// If two samples of a batch fail, the first one in order counts, even if the other one failed earlier.
TEST(BatchLoader, RethrowsTheFailureOfTheFirstSampleInOrder) {
  std::atomic<bool> has_last_failed = false;
  const auto fail = [&](Sample sample, Random&) {
    if (sample.features[0] == 6) {
      EXPECT_TRUE(comes_true([&] { return has_last_failed.load(); }));
      throw std::runtime_error("the first");
    }
    if (sample.features[0] == 7) {
      has_last_failed = true;
      throw std::runtime_error("the last");
    }
  };
  BatchLoader loader(numbers(8).map(fail, "fail").batch(4).prefetch(2, {.threads = 2}), 7, 1, 0, 1, 0, 0, 1);

  EXPECT_THAT(seen(*loader.next()).targets[0], ElementsAre(0, -1, -2, -3));
  try {
    loader.next();
    FAIL() << "gave a batch that could not be loaded";
  } catch (const std::runtime_error& failure) {
    EXPECT_STREQ(failure.what(), "sample 6 of the data set: the function of map() \"fail\" failed: the first");
  }
}

TEST(BatchLoader, LoadsAheadWhileABatchIsInUse) {
  std::latch second_batch_is_loaded(4);
  const Dataset dataset = numbers(4).map([&](Sample, Random&) { second_batch_is_loaded.count_down(); });
  BatchLoader loader(dataset.batch(2).prefetch(1), 7, 1, 0, 1, 0, 0, 1);

  const std::optional<Batch> first = loader.next();
  second_batch_is_loaded.wait();

  EXPECT_THAT(seen(*first).targets[0], ElementsAre(0, -1));
}

TEST(LoadedShards, HaveTheSamplesThatALoaderGives) {
  const Dataset dataset = numbers(23).shuffle().map(add_noise).batch(9).prefetch(3);
  const std::vector<Seen> whole = read_all(dataset, {.shards = 6, .first = 0, .end = 6}, {.end_epoch = 2});

  for (int shard = 0; shard < 6; ++shard) {
    LoadedShards loaded(dataset, 7, 6, shard, shard + 1, 1, 2);
    const LoadedShards moved = std::move(loaded);
    const Seen& expected = whole.at(5);
    const auto index = static_cast<std::size_t>(shard);
    const Seen one = seen(moved.batch());

    EXPECT_EQ(one.samples, expected.samples);
    EXPECT_THAT(one.first_samples, ElementsAre(expected.first_samples[index]));
    EXPECT_THAT(one.features, ElementsAre(expected.features[index]));
    EXPECT_THAT(one.targets, ElementsAre(expected.targets[index]));
  }
}

TEST(BatchLoader, SendsTheSameBatchesAhead) {
  for (const int depth : {1, 3}) {
    const Dataset dataset = numbers(23).skip(2).shuffle(8).take(20).repeat(2).batch(9).prefetch(depth);
    BatchLoader loader(dataset, 7, 4, 1, 4, 0, 1, 3, {.feeds = feeds_of_numbers(23)});

    EXPECT_TRUE(read_all(loader) ==
                read_all(dataset, {.shards = 4, .first = 1, .end = 4}, {.epoch = 0, .batch = 1, .end_epoch = 3}));
    EXPECT_FALSE(loader.next().has_value());
  }
}

// The thread that finds positions is not woken for each batch.
TEST(BatchLoader, SendsManyMoreBatchesThanItFindsAhead) {
  for (const int depth : {1, 40}) {
    const Dataset dataset = numbers(23).shuffle(8).batch(1).prefetch(depth);
    BatchLoader loader(dataset, 7, 1, 0, 1, 0, 0, 6, {.feeds = feeds_of_numbers(23)});

    EXPECT_TRUE(read_all(loader) == read_all(dataset, {}, {.end_epoch = 6}));
  }
}

// Samples that no array holds are loaded into rows of the host and sent from there.
TEST(BatchLoader, SendsTheBatchesThatItHasLoaded) {
  for (const int depth : {1, 3}) {
    const Dataset dataset = numbers(23).skip(2).shuffle(8).map(add_noise, "noise").repeat(2).batch(9).prefetch(depth);
    BatchLoader loader(dataset, 7, 4, 1, 4, 0, 1, 3, {.stage = row_views});

    EXPECT_TRUE(read_all(loader) ==
                read_all(dataset, {.shards = 4, .first = 1, .end = 4}, {.epoch = 0, .batch = 1, .end_epoch = 3}));
    EXPECT_FALSE(loader.next().has_value());
  }
}

TEST(BatchLoader, OverwritesNoBatchThatIsInUseOrOnItsWay) {
  std::atomic<int> loaded = 0;
  const auto count = [&](Sample, Random&) { ++loaded; };
  const Dataset dataset = numbers(40).map(count, "count").batch(2).prefetch(3);
  BatchLoader loader(dataset, 7, 1, 0, 1, 0, 0, 1, {.stage = row_views});
  const std::vector<Seen> expected = read_all(numbers(40).batch(2));

  for (int batch = 0; batch < 5; ++batch) {
    const std::optional<Batch> used = loader.next();
    // All that may be loaded while this batch is in use: the one on its way, and three ahead.
    ASSERT_TRUE(comes_true([&] { return loaded == 2 * (batch + 1 + 1 + 3); }));

    EXPECT_TRUE(used->is_on_device);
    EXPECT_EQ(seen(*used), expected[static_cast<std::size_t>(batch)]);
  }
}

TEST(BatchLoader, LoadsIntoHostMemoryIfNothingCanBeSent) {
  const Dataset dataset = numbers(5).batch(2).prefetch(2);
  int rows_let_go = 0;
  const auto pin_only = [&](const HostRows& rows) {
    // The rows are still unchanged.
    const auto let_go = [&rows_let_go, memory = rows.memory](void*) {
      for (std::byte& byte : memory) byte = std::byte{1};
      ++rows_let_go;
    };
    return SampleFeeds{.pinned = std::shared_ptr<void>(nullptr, let_go)};
  };
  BatchLoader loader(dataset, 7, 1, 0, 1, 0, 0, 1, {.stage = pin_only});
  EXPECT_EQ(rows_let_go, 1);

  const std::optional<Batch> batch = loader.next();

  EXPECT_FALSE(batch->is_on_device);
  EXPECT_EQ(seen(*batch), read_all(dataset).front());
}

TEST(BatchLoader, SendsNothingWithoutSamples) {
  const Dataset dataset = numbers(3).batch(4, {.drop_remainder = true}).prefetch(2);
  BatchLoader fed(dataset, 7, 1, 0, 1, 0, 0, 1, {.feeds = feeds_of_numbers(3)});
  BatchLoader staged(numbers(0).batch(4).prefetch(2), 7, 1, 0, 1, 0, 0, 1, {.stage = row_views});

  EXPECT_FALSE(fed.next().has_value());
  EXPECT_FALSE(staged.next().has_value());
}

TEST(BatchLoader, NeedsABatchSize) {
  try {
    BatchLoader loader(numbers(4), 7, 1, 0, 1, 0, 0, 1);
    FAIL() << "took a data set without batch()";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("batch(samples)"));
  }
}

TEST(BatchLoaderDeathTest, AssertsThatItsCursorAndShardsExist) {
  const Dataset dataset = numbers(4).batch(2);

  EXPECT_DEATH(BatchLoader(dataset, 7, 2, 1, 3, 0, 0, 1), "end_shard <= total_shards");
  EXPECT_DEATH(BatchLoader(dataset, 7, 1, 0, 1, 0, 3, 1), "batch_index <= dataset_.batches");
}

}  // namespace
}  // namespace holdfast
