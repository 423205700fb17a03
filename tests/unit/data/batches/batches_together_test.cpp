// Several batches of a data set as one, as a step of several replicas takes them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "data/batches/batch_loader.h"
#include "unit/data/support/numbers.h"

namespace holdfast {
namespace {

using testing::ElementsAre;

struct Course {
  std::int64_t first_batch = 0;
  std::int64_t end_epoch = 1;
  std::int64_t together = 1;
};

using Place = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // epoch, index and samples

struct Loaded {
  std::vector<Place> places;
  std::vector<float> features;
};

Loaded load_all(const Dataset& dataset, const Course& course) {
  BatchLoader loader(dataset, 7, 3, 0, 3, 0, course.first_batch, course.end_epoch, {}, course.together);
  Loaded loaded;
  while (const std::optional<Batch> batch = loader.next()) {
    loaded.places.emplace_back(batch->epoch, batch->index, batch->samples);
    for (const ShardSlice& shard : batch->shards) {
      loaded.features.insert(loaded.features.end(), shard.features.begin(), shard.features.end());
    }
  }
  return loaded;
}

TEST(BatchesTogether, AreFewerAtTheEndOfAnEpoch) {
  const Dataset dataset = numbers(23).shuffle().batch(5);

  const Loaded loaded = load_all(dataset, {.first_batch = 1, .end_epoch = 2, .together = 2});

  EXPECT_THAT(loaded.places,
              ElementsAre(Place(0, 1, 10), Place(0, 3, 8), Place(1, 0, 10), Place(1, 2, 10), Place(1, 4, 3)));
}

TEST(BatchesTogether, HaveTheSamplesOfEachOfThem) {
  for (const int depth : {0, 1, 3}) {
    const Dataset dataset = numbers(23).shuffle().batch(5).prefetch(depth);
    for (const std::int64_t together : {2, 3, 5, 9}) {
      EXPECT_EQ(load_all(dataset, {.end_epoch = 3, .together = together}).features,
                load_all(dataset, {.end_epoch = 3}).features);
    }
  }
}

TEST(BatchesTogether, LeaveOutARemainderThatIsDropped) {
  const Loaded loaded = load_all(numbers(23).batch(5, {.drop_remainder = true}), {.together = 3});

  EXPECT_THAT(loaded.places, ElementsAre(Place(0, 0, 15), Place(0, 3, 5)));
}

TEST(BatchesTogether, AreLoadedOutOfTurnWithTheSameSamples) {
  const Dataset dataset = numbers(23).shuffle().batch(5);

  const LoadedShards loaded(dataset, 7, 3, 0, 3, 0, 2, 2);

  EXPECT_EQ(loaded.batch().samples, 10);
  std::vector<float> features;
  for (const ShardSlice& shard : loaded.batch().shards) {
    features.insert(features.end(), shard.features.begin(), shard.features.end());
  }
  const std::vector<float> all = load_all(dataset, {}).features;
  EXPECT_EQ(features, std::vector<float>(all.begin() + 20, all.begin() + 40));  // two floats a sample
}

}  // namespace
}  // namespace holdfast
