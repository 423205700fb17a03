// Stages have random access: what a data set loads is a function of (seed, epoch, position), in any
// order and thread.

#include "holdfast/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>
#include <vector>

#include "holdfast/base/error.h"
#include "support/thrown.h"
#include "unit/data/support/numbers.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Values = std::vector<float>;

// Samples 0, 1, 2, ...: the feature is the number, and the target is ten times the number.
Dataset tenfold_targets(std::int64_t count) {
  Tensor features{Shape{count, 1}};
  Tensor targets{Shape{count}};
  for (std::int64_t i = 0; i < count; ++i) {
    features.sample(i)[0] = static_cast<float>(i);
    targets.sample(i)[0] = static_cast<float>(10 * i);
  }
  return from_tensors(std::move(features), std::move(targets));
}

Values features_of(const Dataset& dataset, std::uint64_t seed = 1, std::int64_t epoch = 0) {
  const auto elements = static_cast<std::size_t>(dataset.feature_shape().element_count());
  Values all;
  for (std::int64_t position = 0; position < dataset.size(); ++position) {
    Values features(elements);
    Values targets(static_cast<std::size_t>(dataset.target_shape().element_count()));
    dataset.load(seed, epoch, position, {.features = features, .targets = targets});
    all.insert(all.end(), features.begin(), features.end());
  }
  return all;
}

template <typename Function>
void expect_refused(const Function& function, const std::string& reason) {
  try {
    function();
    ADD_FAILURE() << "nothing was refused; expected: " << reason;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr(reason));
  }
}

void keep(Sample, Random&) {}

TEST(FromTensors, GivesFeaturesAndTargetsOfEachSample) {
  const Dataset dataset = from_tensors(Tensor(Shape{2, 1, 2}, {1, 2, 3, 4}), Tensor(Shape{2, 3}, {5, 6, 7, 8, 9, 10}));
  Values features(2);
  Values targets(3);

  dataset.load(0, 0, 1, {.features = features, .targets = targets});

  EXPECT_EQ(dataset.size(), 2);
  EXPECT_EQ(dataset.feature_shape(), (Shape{1, 2}));
  EXPECT_EQ(dataset.target_shape(), Shape{3});
  EXPECT_THAT(features, ElementsAre(3, 4));
  EXPECT_THAT(targets, ElementsAre(8, 9, 10));
}

TEST(FromTensors, NeedsTheSameFirstAxis) {
  expect_refused([] { from_tensors(Tensor{Shape{3, 2}}, Tensor{Shape{2}}); }, "their shapes are [3, 2] and [2]");
  expect_refused([] { from_tensors(Tensor{Shape{}}, Tensor{Shape{}}); }, "their shapes are [] and []");
}

TEST(Dataset, MapsSamplesInPlace) {
  const Dataset dataset =
      tenfold_targets(3).map([](Sample sample, Random&) { sample.features[0] += sample.targets[0]; });

  EXPECT_THAT(features_of(dataset), ElementsAre(0, 11, 22));
}

TEST(Dataset, MapsToAnotherShape) {
  const Dataset dataset =
      tenfold_targets(2).map(Shape{2, 1}, [](std::span<const float> in, std::span<float> out, Random&) {
        out[0] = in[0];
        out[1] = -in[0];
      });

  EXPECT_EQ(dataset.feature_shape(), (Shape{2, 1}));
  EXPECT_EQ(dataset.target_shape(), Shape{});
  EXPECT_THAT(features_of(dataset), ElementsAre(0, 0, 1, -1));
}

TEST(Dataset, ChainsMapsOfDifferentShapes) {
  const auto repeat_first = [](std::span<const float> in, std::span<float> out, Random&) {
    std::fill(out.begin(), out.end(), in[0] + 1);
  };
  const Dataset dataset =
      tenfold_targets(2).map(Shape{3}, repeat_first).map(Shape{2}, repeat_first).map(Shape{1}, repeat_first);

  EXPECT_THAT(features_of(dataset), ElementsAre(3, 4));
}

TEST(Dataset, DrawsTheSameForTheSameSeedEpochAndPosition) {
  const Dataset dataset = tenfold_targets(20).map(add_noise);

  EXPECT_EQ(features_of(dataset, 1, 2), features_of(dataset, 1, 2));
  EXPECT_NE(features_of(dataset, 1, 2), features_of(dataset, 2, 2));
  EXPECT_NE(features_of(dataset, 1, 2), features_of(dataset, 1, 3));
}

TEST(Dataset, DrawsOtherNoiseForEachPosition) {
  Values noise = features_of(from_tensors(Tensor{Shape{100, 1}}, Tensor{Shape{100}}).map(add_noise));

  std::sort(noise.begin(), noise.end());

  EXPECT_EQ(std::adjacent_find(noise.begin(), noise.end()), noise.end());
}

TEST(Dataset, DrawsOtherNoiseInEachMap) {
  const auto store_draw = [](std::size_t element) {
    return [=](Sample sample, Random& random) { sample.features[element] = random.uniform(); };
  };
  const Dataset dataset = from_tensors(Tensor{Shape{1, 2}}, Tensor{Shape{1}}).map(store_draw(0)).map(store_draw(1));

  const Values draws = features_of(dataset);

  EXPECT_NE(draws[0], draws[1]);
}

TEST(Dataset, BindsDrawsBeforeAShuffleToTheSample) {
  const Values in_order = features_of(tenfold_targets(50).map(add_noise));
  Values shuffled = features_of(tenfold_targets(50).map(add_noise).shuffle());

  // The noise is below 1, so sorting restores the order of the numbers.
  std::sort(shuffled.begin(), shuffled.end());

  EXPECT_EQ(shuffled, in_order);
}

TEST(Dataset, PassesOnTheExceptionOfAMap) {
  const Dataset dataset = tenfold_targets(3).map([](Sample sample, Random&) {
    if (sample.features[0] == 2) throw std::runtime_error("sample 2 is odd");
  });
  Values features(1);
  Values targets(1);

  dataset.load(0, 0, 1, {.features = features, .targets = targets});
  EXPECT_THROW(dataset.load(0, 0, 2, {.features = features, .targets = targets}), std::runtime_error);
}

TEST(Dataset, TakesAndSkips) {
  EXPECT_THAT(features_of(tenfold_targets(5).take(2)), ElementsAre(0, 1));
  EXPECT_THAT(features_of(tenfold_targets(5).skip(3)), ElementsAre(3, 4));
  EXPECT_THAT(features_of(tenfold_targets(9).skip(2).take(3).skip(1)), ElementsAre(3, 4));
}

TEST(Dataset, TakesAndSkipsNoMoreThanItHas) {
  EXPECT_THAT(features_of(tenfold_targets(2).take(7)), ElementsAre(0, 1));
  EXPECT_THAT(features_of(tenfold_targets(2).skip(7)), IsEmpty());
  EXPECT_THAT(features_of(tenfold_targets(2).take(0)), IsEmpty());
}

TEST(Dataset, RepeatsItsSamples) {
  EXPECT_THAT(features_of(tenfold_targets(2).repeat(3)), ElementsAre(0, 1, 0, 1, 0, 1));
}

TEST(Dataset, GivesEachRepetitionTheOrderOfAnEpochOfItsOwn) {
  const Dataset shuffled = tenfold_targets(30).shuffle();

  const Values repeated = features_of(shuffled.repeat(2), 1, 3);

  EXPECT_EQ(Values(repeated.begin(), repeated.begin() + 30), features_of(shuffled, 1, 6));
  EXPECT_EQ(Values(repeated.begin() + 30, repeated.end()), features_of(shuffled, 1, 7));
}

TEST(Dataset, WithoutSamplesTakesEveryStage) {
  const Dataset empty = tenfold_targets(0).map(keep).shuffle().shuffle(3).take(1).skip(1).repeat(2).batch(4);

  EXPECT_EQ(empty.size(), 0);
  EXPECT_EQ(empty.batches(), 0);
}

TEST(Dataset, CountsItsBatches) {
  EXPECT_EQ(tenfold_targets(10).batches(), 0);
  EXPECT_EQ(tenfold_targets(10).batch_size(), 0);
  EXPECT_EQ(tenfold_targets(10).batch(4).batch_size(), 4);
  EXPECT_EQ(tenfold_targets(10).batch(4).batches(), 3);
  EXPECT_EQ(tenfold_targets(10).batch(5).batches(), 2);
  EXPECT_EQ(tenfold_targets(10).batch(100).batches(), 1);
  EXPECT_EQ(tenfold_targets(10).batch(4, {.drop_remainder = true}).batches(), 2);
  EXPECT_EQ(tenfold_targets(10).batch(100, {.drop_remainder = true}).batches(), 0);
}

TEST(Dataset, RemembersItsPrefetchDepth) {
  EXPECT_EQ(tenfold_targets(3).prefetch_depth(), 0);
  EXPECT_EQ(tenfold_targets(3).batch(2).prefetch(4).prefetch_depth(), 4);
  EXPECT_EQ(tenfold_targets(3).prefetch(4).batch(2).batch_size(), 2);
  EXPECT_EQ(tenfold_targets(3).prefetch(4).prefetch_threads(), 1);
  EXPECT_EQ(tenfold_targets(3).prefetch(4, {.threads = 3}).prefetch_threads(), 3);
}

TEST(Dataset, RefusesRoundsThatDrawsCannotTellApart) {
  constexpr std::int64_t kRounds = std::int64_t{1} << 47;
  const Dataset data = tenfold_targets(3).shuffle().repeat(kRounds);

  EXPECT_NO_THROW(features_of(data.skip(3 * kRounds - 2), 1));
  for (const std::int64_t epoch : {std::int64_t{2}, std::int64_t{1} << 20}) {
    EXPECT_EQ(code_thrown_by([&] { features_of(data.take(1), 1, epoch); }), ErrorCode::unsupported) << epoch;
  }
}

TEST(Dataset, RefusesStagesAfterBatchAndPrefetch) {
  const Dataset batched = tenfold_targets(4).batch(2);
  const auto identity = [](std::span<const float>, std::span<float>, Random&) {};

  expect_refused([&] { batched.map(keep); }, "map() stands after batch()");
  expect_refused([&] { batched.map(Shape{1}, identity); }, "map() stands after batch()");
  expect_refused([&] { batched.shuffle(); }, "shuffle() stands after batch()");
  expect_refused([&] { batched.take(1); }, "take() stands after batch()");
  expect_refused([&] { batched.skip(1); }, "skip() stands after batch()");
  expect_refused([&] { batched.repeat(1); }, "repeat() stands after batch()");
  expect_refused([&] { tenfold_targets(4).prefetch(0).map(keep); }, "map() stands after prefetch()");
  expect_refused([&] { tenfold_targets(4).keep_on_device().map(keep); }, "map() stands after keep_on_device()");
  expect_refused([&] { batched.batch(2); }, "batch() is given twice");
  expect_refused([&] { batched.prefetch(1).prefetch(1); }, "prefetch() is given twice");
}

TEST(Dataset, RefusesNumbersThatCannotWork) {
  expect_refused([] { tenfold_targets(4).take(-1); }, "take()");
  expect_refused([] { tenfold_targets(4).skip(-1); }, "skip()");
  expect_refused([] { tenfold_targets(4).repeat(0); }, "repeat()");
  expect_refused([] { tenfold_targets(4).repeat(std::numeric_limits<std::int64_t>::max()); }, "repeat()");
  expect_refused([] { tenfold_targets(4).shuffle(0); }, "shuffle()");
  expect_refused([] { tenfold_targets(4).shuffle(-5); }, "shuffle()");
  expect_refused([] { tenfold_targets(4).batch(0); }, "batch()");
  expect_refused([] { tenfold_targets(4).prefetch(-1); }, "prefetch()");
  expect_refused([] { tenfold_targets(4).prefetch(1, {.threads = -1}); }, "by -1 threads");
  expect_refused([] { tenfold_targets(4).prefetch(0, {.threads = 2}); }, "with a depth of 0");
}

TEST(Dataset, RefusesAnEmptyFunction) {
  expect_refused([] { tenfold_targets(4).map(Dataset::MapFunction()); }, "empty function");
  expect_refused([] { tenfold_targets(4).map(Shape{1}, Dataset::FeatureFunction()); }, "empty function");
}

TEST(Dataset, RefusesToLoadSamplesThatDoNotExist) {
  const Dataset dataset = tenfold_targets(4);
  Values one(1);
  Values two(2);

  expect_refused([&] { dataset.load(0, 0, 4, {.features = one, .targets = one}); }, "no sample 4 in epoch 0");
  expect_refused([&] { dataset.load(0, 0, -1, {.features = one, .targets = one}); }, "no sample -1");
  expect_refused([&] { dataset.load(0, -1, 0, {.features = one, .targets = one}); }, "epoch -1");
  expect_refused([&] { dataset.load(0, 0, 0, {.features = two, .targets = one}); }, "does not fit into 2 and 1 floats");
  expect_refused([&] { dataset.load(0, 0, 0, {.features = one, .targets = {}}); }, "does not fit into 1 and 0 floats");
}

TEST(Dataset, IsNotChangedByLaterStages) {
  const Dataset source = tenfold_targets(4);

  const Dataset other = source.skip(1).batch(2).prefetch(1);

  EXPECT_EQ(source.size(), 4);
  EXPECT_EQ(source.batch_size(), 0);
  EXPECT_EQ(other.size(), 3);
}

TEST(Dataset, LoadsTheSameFromSeveralThreads) {
  const Dataset dataset = tenfold_targets(200).shuffle(64).map(add_noise).shuffle();
  // Two passes over different epochs, so that threads also compete for the orders that the shuffles keep.
  const std::vector<Values> expected = {features_of(dataset, 1, 0), features_of(dataset, 1, 1)};

  std::vector<Values> loaded(4);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < loaded.size(); ++i) {
      threads.emplace_back([&, i] { loaded[i] = features_of(dataset, 1, static_cast<std::int64_t>(i % 2)); });
    }
  }

  for (std::size_t i = 0; i < loaded.size(); ++i) EXPECT_TRUE(loaded[i] == expected[i % 2]) << i;
}

TEST(DatasetDescription, ListsStagesShapesAndSizes) {
  const Dataset dataset =
      tenfold_targets(10).skip(1).shuffle(4).map(keep, "keep").repeat(2).batch(4, {.drop_remainder = true});

  const nlohmann::json description = nlohmann::json::parse(dataset.description());

  EXPECT_EQ(description.at("size"), 18);
  EXPECT_EQ(description.at("features"), nlohmann::json({1}));
  EXPECT_EQ(description.at("targets"), nlohmann::json::array());
  EXPECT_EQ(description.at("batch"), 4);
  EXPECT_EQ(description.at("drop_remainder"), true);
  const nlohmann::json& stages = description.at("stages");
  ASSERT_EQ(stages.size(), 5U);
  EXPECT_EQ(stages[0].at("kind"), "tensors");
  EXPECT_EQ(stages[1], (nlohmann::json{{"kind", "range"}, {"first", 1}, {"size", 9}}));
  EXPECT_EQ(stages[2], (nlohmann::json{{"kind", "shuffle"}, {"window", 4}}));
  EXPECT_EQ(stages[3], (nlohmann::json{{"kind", "map"}, {"name", "keep"}}));
  EXPECT_EQ(stages[4], (nlohmann::json{{"kind", "repeat"}, {"count", 2}}));
}

TEST(DatasetDescription, IsTheSameForTheSameData) {
  EXPECT_EQ(tenfold_targets(4).shuffle().batch(2).description(), tenfold_targets(4).shuffle().batch(2).description());
}

TEST(DatasetDescription, DiffersWithEverythingThatBitsDependOn) {
  const std::string description = tenfold_targets(4).description();

  EXPECT_NE(from_tensors(Tensor(Shape{4, 1}, {0, 1, 2, 4}), Tensor(Shape{4}, {0, 10, 20, 30})).description(),
            description);
  EXPECT_NE(from_tensors(Tensor(Shape{4, 1}, {0, 1, 2, 3}), Tensor(Shape{4}, {0, 10, 20, 31})).description(),
            description);
  EXPECT_NE(from_tensors(Tensor(Shape{4}, {0, 1, 2, 3}), Tensor(Shape{4}, {0, 10, 20, 30})).description(), description);
  EXPECT_NE(tenfold_targets(4).shuffle().description(), description);
  EXPECT_NE(tenfold_targets(4).batch(2).description(), description);
  EXPECT_NE(tenfold_targets(4).batch(2).description(),
            tenfold_targets(4).batch(2, {.drop_remainder = true}).description());
  EXPECT_NE(tenfold_targets(4).map(keep, "a").description(), tenfold_targets(4).map(keep, "b").description());
}

TEST(DatasetDescription, DoesNotDependOnPrefetchingOrOnWhereSamplesAreKept) {
  EXPECT_EQ(tenfold_targets(4).batch(2).description(),
            tenfold_targets(4).batch(2).prefetch(3, {.threads = 2}).description());
  EXPECT_EQ(tenfold_targets(4).batch(2).description(), tenfold_targets(4).keep_on_device().batch(2).description());
}

TEST(DatasetOnADevice, NeedsSamplesThatNoMapChanges) {
  expect_refused([] { tenfold_targets(4).map(keep).shuffle().keep_on_device(); }, "stands after map()");
  expect_refused([] { tenfold_targets(4).keep_on_device().batch(2).keep_on_device(); }, "given twice");

  EXPECT_TRUE(tenfold_targets(4).shuffle().take(3).repeat(2).batch(2).keep_on_device().is_kept_on_device());
  EXPECT_TRUE(tenfold_targets(0).keep_on_device().is_kept_on_device());
  EXPECT_FALSE(tenfold_targets(4).batch(2).is_kept_on_device());
}

TEST(DatasetDescription, IsTheSameForEveryWayToShuffleEverything) {
  EXPECT_EQ(tenfold_targets(4).shuffle().description(), tenfold_targets(4).shuffle(4).description());
  EXPECT_EQ(tenfold_targets(4).shuffle().description(), tenfold_targets(4).shuffle(10'000).description());
}

}  // namespace
}  // namespace holdfast
