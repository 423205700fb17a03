// Properties that all data sets have, checked on chains of stages that are drawn at random: a sample is a function of
// (seed, epoch, position) alone, and equal chains have equal descriptions.

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "data/stages/stage.h"
#include "unit/data/support/loaded.h"
#include "unit/data/support/pipeline_draws.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kPipelines = 200;

TEST(Pipelines, GiveTheSameSamplesInAnyOrderOfLoads) {
  for (std::uint64_t number = 0; number < kPipelines; ++number) {
    const Dataset data = pipeline(number);
    std::vector<std::vector<float>> in_order;
    for (std::int64_t position = 0; position < data.size(); ++position) {
      in_order.push_back(loaded(data, number, 1, position));
    }

    PipelineDraws draws(number + kPipelines);
    for (int load = 0; load < 30; ++load) {
      const std::int64_t position = draws.below(data.size());
      // Loads of another epoch and seed in between must leave no trace.
      loaded(data, number + 1, draws.below(3), draws.below(data.size()));
      EXPECT_EQ(loaded(data, number, 1, position), in_order[static_cast<std::size_t>(position)])
          << data.description() << " position " << position;
    }
  }
}

TEST(Pipelines, AreEqualWhenTheyAreMadeAgain) {
  for (std::uint64_t number = 0; number < kPipelines; ++number) {
    const Dataset first = pipeline(number);
    const Dataset second = pipeline(number);

    ASSERT_EQ(first.description(), second.description());
    for (std::int64_t position = 0; position < first.size(); position += 3) {
      EXPECT_EQ(loaded(first, 5, 2, position), loaded(second, 5, 2, position)) << first.description();
    }
  }
}

TEST(Pipelines, GiveTheTargetsOfTheSampleWithoutLoadingIt) {
  for (std::uint64_t number = 0; number < kPipelines; ++number) {
    const Dataset data = pipeline(number);
    std::vector<float> targets(data.target_layout().words());
    for (std::int64_t position = 0; position < data.size(); position += 2) {
      data.last_stage()->load_targets(number, 1, position, targets);
      const std::vector<float> row = loaded(data, number, 1, position);
      EXPECT_TRUE(std::equal(targets.begin(), targets.end(), row.end() - static_cast<std::ptrdiff_t>(targets.size())))
          << data.description() << " position " << position;
    }
  }
}

std::vector<std::vector<float>> sorted_samples(const Dataset& data, std::int64_t epoch) {
  std::vector<std::vector<float>> samples;
  for (std::int64_t position = 0; position < data.size(); ++position) {
    samples.push_back(loaded(data, 3, epoch, position));
  }
  std::ranges::sort(samples);
  return samples;
}

// What a run depends on when it goes on with other replicas or after a death: an order leaves out nothing.
TEST(Pipelines, KeepEachSampleOnceInAnyOrderThatFollows) {
  for (std::uint64_t number = 0; number < kPipelines; ++number) {
    const Dataset data = pipeline(number);
    // A shuffle gives the draws of the stages before it to the same samples.
    EXPECT_EQ(sorted_samples(data.shuffle(7), 1), sorted_samples(data, 1)) << data.description();
    if (mixing_stage(*data.last_stage()) != nullptr) continue;
    const Dataset bucketed = data.bucketed(3, {.bounds = {0, 2}, .length_of = small_length});
    EXPECT_EQ(sorted_samples(bucketed, 1), sorted_samples(data, 1)) << data.description();
  }
}

}  // namespace
}  // namespace holdfast
