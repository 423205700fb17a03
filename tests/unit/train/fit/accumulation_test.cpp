// Steps of several batches. They have the bits of one batch as large, in a run with as many times the shards.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "support/thrown.h"
#include "unit/train/support/played_callbacks.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

struct Accumulated {
  std::int64_t batch = 4;
  std::int64_t accumulate = 1;
  // Makes those of each replica, as processes have their own.
  std::function<std::vector<CallbackHandle>()> callbacks = [] { return std::vector<CallbackHandle>(); };
  GradientChecks checks{};
};

Dataset weighted_data() {
  constexpr std::int64_t kSamples = 53;
  Tensor features(Shape{kSamples, 6, 6, 1});
  Tensor targets(Shape{kSamples});
  Tensor weights(Shape{kSamples});
  for (std::int64_t i = 0; i < kSamples; ++i) {
    Random random(9, Purpose::user, 0, static_cast<std::uint64_t>(i));
    for (float& value : features.sample(i)) value = random.normal();
    targets.values()[static_cast<std::size_t>(i)] = static_cast<float>(i % 3);
    weights.values()[static_cast<std::size_t>(i)] = static_cast<float>(i % 4) / 2;
  }
  return from_tensors({{"x", std::move(features)}}, {{"y", std::move(targets)}}, std::move(weights));
}

// 53 samples, so that the last step is short, and some of its shards are empty.
Outcome accumulated_outcome(const ThreadRun& run, const Accumulated& how, const Dataset& data = small_data()) {
  return outcomes_of(run, [&](Replica& replica) {
    Trainer trainer(replica, small_model(), Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true}),
                    {SparseCategoricalAccuracy({.name = "accuracy"})});
    const FitResult fit = trainer.fit(
        data.shuffle().batch(how.batch).prefetch(1),
        {.epochs = 2, .accumulate = how.accumulate, .callbacks = how.callbacks(), .check_gradients = how.checks});
    return Outcome{trainer.weights_digest().hex(), trainer.step(), fit.results, {}, fit.history};
  })[0];
}

TEST(Accumulation, GivesTheBitsOfALargerBatchInMoreShards) {
  for (const std::int64_t together : {2, 3, 4, 5, 6, 7, 8, 12}) {
    for (const int shards : {1, 2, 3, 4, 5}) {
      SCOPED_TRACE(std::to_string(together) + " batches in " + std::to_string(shards) + " shards");
      const int all_shards = shards * static_cast<int>(together);
      expect_equal(accumulated_outcome({.shards = shards}, {.batch = 4, .accumulate = together}),
                   accumulated_outcome({.shards = all_shards}, {.batch = 4 * together}));
    }
  }
}

TEST(Accumulation, GivesTheSameBitsOnAnyNumberOfReplicasAndWorkers) {
  for (const std::int64_t together : {3, 4, 6}) {
    const Accumulated how{.accumulate = together};
    const Outcome expected = accumulated_outcome({}, how);

    for (const int replicas : {2, 3, 4}) expect_equal(accumulated_outcome({.replicas = replicas}, how), expected);
    expect_equal(accumulated_outcome({.replicas = 2, .workers = 2}, how), expected);
    expect_equal(accumulated_outcome({.replicas = 2, .assigned = {3, 1}}, how), expected);
  }
}

TEST(Accumulation, DividesByTheWeightsOfAllItsBatches) {
  const Outcome together = accumulated_outcome({.replicas = 2, .shards = 2}, {.accumulate = 4}, weighted_data());

  expect_equal(together, accumulated_outcome({.shards = 8}, {.batch = 16}, weighted_data()));
}

// A difference would be computed again and, with the same outcome, be refused.
TEST(Accumulation, IsComputedTwiceAlikeByAChecker) {
  for (const std::int64_t together : {4, 6}) {
    const Accumulated unchecked{.accumulate = together, .checks = {.every = 0}};
    for (const int count : {0, 1}) {
      const Accumulated checked{.accumulate = together, .checks = {.every = 1, .shards = count}};
      for (const int replicas : {1, 2, 3}) {
        expect_equal(accumulated_outcome({.replicas = replicas}, checked), accumulated_outcome({}, unchecked));
      }
    }
  }
}

// Fits with other numbers of batches, and evaluation between them: the ranks connect again each time.
TEST(Accumulation, ChangesFromFitToFit) {
  const auto digest_with = [](const ThreadRun& run) {
    return outcomes_of(run,
                       [&](Replica& replica) {
                         Trainer trainer(replica, small_model(), Adam(0.01F),
                                         SparseCategoricalCrossentropy({.from_logits = true}));
                         for (const std::int64_t together : {3, 6, 1, 5}) {
                           trainer.fit(small_data().batch(4), {.accumulate = together});
                           trainer.evaluate(small_data().batch(10));
                         }
                         return Outcome{trainer.weights_digest().hex(), trainer.step(), {}, {}, {}};
                       })[0]
        .digest;
  };
  const std::string expected = digest_with({});

  EXPECT_EQ(digest_with({.replicas = 2}), expected);
  EXPECT_EQ(digest_with({.replicas = 3, .assigned = {1, 1, 2}}), expected);
}

TEST(Accumulation, GoesOnAfterAFailureWithTheSameBits) {
  const Outcome expected = accumulated_outcome({}, {.accumulate = 3});
  const TemporaryFolder folder;
  const auto failing = []() -> std::vector<CallbackHandle> { return {ModelCheckpoint({.every_steps = 1}), FailAt(6)}; };
  EXPECT_THROW(
      accumulated_outcome({.replicas = 2, .run_directory = folder.path()}, {.accumulate = 3, .callbacks = failing}),
      std::runtime_error);

  const auto going_on = []() -> std::vector<CallbackHandle> { return {ModelCheckpoint()}; };
  const Outcome outcome =
      accumulated_outcome({.replicas = 3, .run_directory = folder.path()}, {.accumulate = 3, .callbacks = going_on});

  expect_equal(outcome, expected);
  EXPECT_EQ(outcome.step, 10);  // an epoch has 14 batches, so 5 steps
}

TEST(Accumulation, IsAChoiceOfTheRun) {
  const TemporaryFolder folder;
  accumulated_outcome({.run_directory = folder.path()}, {.accumulate = 2});

  const std::string sentence =
      sentence_thrown_by([&] { accumulated_outcome({.run_directory = folder.path()}, {.accumulate = 4}); });

  EXPECT_THAT(sentence, HasSubstr("call 1 of the Trainer: accumulate was 2 and is 4"));
}

}  // namespace
}  // namespace holdfast
