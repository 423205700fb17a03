#include "data/batches/resident_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "unit/data/support/numbers.h"

namespace holdfast {
namespace {

using testing::ElementsAre;

TEST(ResidentSamples, AreTakenInAnyOrderAndSeveralTimes) {
  ResidentSamples samples(numbers(5), host_memory());
  const std::array<std::int64_t, 4> positions = {4, 0, 0, 3};

  const ResidentSamples::Views taken = samples.take(positions);

  EXPECT_THAT(taken.features, ElementsAre(4, 4.5F, 0, 0.5F, 0, 0.5F, 3, 3.5F));
  EXPECT_THAT(taken.targets, ElementsAre(-4, 0, 0, -3));
}

TEST(ResidentSamples, ThatFollowEachOtherAreNotCopied) {
  ResidentSamples samples(numbers(5), host_memory());
  const std::array<std::int64_t, 5> all = {0, 1, 2, 3, 4};
  const std::array<std::int64_t, 2> some = {2, 3};

  const float* const begin = samples.take(all).features.data();

  EXPECT_EQ(samples.take(some).features.data(), begin + 4);
  EXPECT_THAT(samples.take(some).targets, ElementsAre(-2, -3));
}

TEST(ResidentSamples, AreEmptyForNoPositions) {
  ResidentSamples samples(numbers(5), host_memory());

  EXPECT_TRUE(samples.take({}).features.empty());
  EXPECT_TRUE(samples.take({}).targets.empty());
}

TEST(ResidentSamples, ServeAllStagesOfOneSource) {
  const Dataset source = numbers(6);
  ResidentSamples samples(source.take(3), host_memory());
  const std::array<std::int64_t, 1> last = {5};

  EXPECT_TRUE(samples.are_source_of(source.skip(3).shuffle().batch(2)));
  EXPECT_THAT(samples.take(last).features, ElementsAre(5, 5.5F));
  EXPECT_FALSE(samples.are_source_of(numbers(6)));
  EXPECT_FALSE(samples.are_source_of(source.map([](Sample, Random&) {})));
}

}  // namespace
}  // namespace holdfast
