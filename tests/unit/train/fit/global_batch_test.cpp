// Batches that follow the number of replicas. Outcomes are compared exactly.

#include "holdfast/train/global_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "support/thrown.h"
#include "train/fit/epoch_plan.h"
#include "unit/train/support/played_callbacks.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr GlobalBatch kPerReplica{.policy = BatchPolicy::per_replica};
// Within epochs and at their ends, up and down.
const std::vector<BatchChange> kChanges = {{0, 2}, {2, 3}, {5, 1}, {9, 4}, {10, 2}};

GlobalBatch replay_of(std::vector<BatchChange> changes) {
  return {.policy = BatchPolicy::per_replica, .replay = std::move(changes)};
}

struct Asked {
  std::int64_t batch = 5;
  FitOptions options{.epochs = 2};
  // Makes those of each replica, as processes have their own.
  std::function<std::vector<CallbackHandle>()> callbacks = [] { return std::vector<CallbackHandle>(); };
  std::shared_ptr<const Optimizer> optimizer = std::make_shared<Adam>(0.01F);
  bool drop_remainder = false;
};

// 53 samples in four shards, so that the last step is short.
Outcome outcome_with(const ThreadRun& run, const Asked& asked) {
  return outcomes_of(run, [&](Replica& replica) {
    Trainer trainer(replica, small_model(), *asked.optimizer, SparseCategoricalCrossentropy({.from_logits = true}));
    FitOptions options = asked.options;
    options.callbacks = asked.callbacks();
    const Dataset data = small_data().shuffle().batch(asked.batch, {.drop_remainder = asked.drop_remainder});
    const FitResult fit = trainer.fit(data.prefetch(1), options);
    return Outcome{trainer.weights_digest().hex(), trainer.step(), fit.results, {}, fit.history};
  })[0];
}

std::string refusal(const FitOptions& options) {
  return sentence_thrown_by([&] { outcome_with({}, {.options = options}); });
}

TEST(GlobalBatch, IsTheBatchOfTheDataTimesTheReplicas) {
  for (const int replicas : {1, 2, 3, 4}) {
    expect_equal(outcome_with({.replicas = replicas}, {.options = {.epochs = 2, .global_batch = kPerReplica}}),
                 outcome_with({}, {.batch = 5 * replicas}));
  }
}

TEST(GlobalBatch, ScalesStepsOfSeveralBatchesToo) {
  expect_equal(outcome_with({.replicas = 2}, {.options = {.epochs = 2, .accumulate = 2, .global_batch = kPerReplica}}),
               outcome_with({}, {.batch = 10, .options = {.epochs = 2, .accumulate = 2}}));
}

TEST(GlobalBatch, IsCheckedLikeAnyOther) {
  const GradientChecks checks{.every = 1, .shards = 0};

  expect_equal(
      outcome_with({.replicas = 2}, {.options = {.epochs = 2, .global_batch = kPerReplica, .check_gradients = checks}}),
      outcome_with({}, {.batch = 10}));
}

TEST(GlobalBatch, LeavesOutWhatDoesNotFillTheBatchOfAReplica) {
  const Outcome outcome =
      outcome_with({.replicas = 3}, {.options = {.epochs = 1, .global_batch = kPerReplica}, .drop_remainder = true});

  EXPECT_EQ(outcome.step, 4);  // three steps of 15 samples, and one of 5
}

// A start with another number of replicas goes on in the middle of an epoch, and is recorded.
TEST(GlobalBatch, FollowsTheReplicasAndIsReplayedWithTheSameBits) {
  const TemporaryFolder folder;
  const auto fails = []() -> std::vector<CallbackHandle> { return {ModelCheckpoint({.every_steps = 1}), FailAt(4)}; };
  const auto goes_on = []() -> std::vector<CallbackHandle> { return {ModelCheckpoint()}; };
  const FitOptions options{.epochs = 2, .global_batch = kPerReplica};
  EXPECT_THROW(outcome_with({.replicas = 2, .run_directory = folder.path()}, {.options = options, .callbacks = fails}),
               std::runtime_error);
  const Outcome outcome =
      outcome_with({.replicas = 3, .run_directory = folder.path()}, {.options = options, .callbacks = goes_on});

  const std::string last = folder / savepoint_files(folder.path()).back();
  const std::vector<BatchChange> recorded = recorded_batches(last);

  ASSERT_THAT(recorded, SizeIs(2));
  EXPECT_EQ(recorded[0], (BatchChange{.step = 0, .replicas = 2}));
  EXPECT_EQ(recorded[1].replicas, 3);
  for (const int replicas : {1, 2, 4}) {
    const TemporaryFolder again;
    expect_equal(outcome_with({.replicas = replicas, .run_directory = again.path()},
                              {.options = {.epochs = 2, .global_batch = replay_of(recorded)}, .callbacks = goes_on}),
                 outcome);
    EXPECT_EQ(recorded_batches(again / savepoint_files(again.path()).back()), recorded);
  }
}

TEST(GlobalBatch, IsReplayedAlikeAfterAFailure) {
  const FitOptions options{.epochs = 2, .global_batch = replay_of(kChanges)};
  const Outcome expected = outcome_with({}, {.options = options});
  for (const std::int64_t step : {1, 2, 5, 9}) {
    SCOPED_TRACE(step);
    const TemporaryFolder folder;
    const auto fails = [step]() -> std::vector<CallbackHandle> {
      return {ModelCheckpoint({.every_steps = 1}), FailAt(step)};
    };
    EXPECT_THROW(
        outcome_with({.replicas = 2, .run_directory = folder.path()}, {.options = options, .callbacks = fails}),
        std::runtime_error);

    expect_equal(outcome_with({.replicas = 3, .run_directory = folder.path()}, {.options = options}), expected);
  }
}

// Counts how often each sample is loaded in each epoch. Without prefetch(), a batch is loaded when its step comes.
TEST(GlobalBatch, HasEachSampleOnceAnEpochThroughAllChanges) {
  for (const std::int64_t steps_per_epoch : {0, 7}) {
    std::map<int, int> loaded;
    std::vector<std::int64_t> forecasts;
    std::vector<std::int64_t> lengths;
    const LambdaCallback observer(
        {.on_step_end = [&](TrainingContext& context,
                            const Logs&) { forecasts.push_back(context.batches_per_epoch()); },
         .on_epoch_end =
             [&](TrainingContext& context, const Logs&) {
               lengths.push_back(context.batch_in_epoch());
               EXPECT_EQ(forecasts.back(), context.batch_in_epoch());
             }});
    Tensor numbers(Shape{53, 1});
    for (std::int64_t i = 0; i < 53; ++i) numbers.sample(i)[0] = static_cast<float>(i);
    const Dataset data =
        from_tensors(numbers, numbers)
            .shuffle()
            .map([&](Sample sample, Random&) { ++loaded[static_cast<int>(sample.features[0])]; }, "count")
            .batch(5);
    Replica replica = Replica::alone({.shards = 3});
    Trainer trainer(replica, Sequential{Input{1}, Dense{1}}, SGD(1e-6F), MeanSquaredError());

    trainer.fit(data, {.epochs = 3,
                       .steps_per_epoch = steps_per_epoch,
                       .global_batch = replay_of({{0, 2}, {2, 3}, {5, 1}, {7, 4}, {10, 2}}),
                       .callbacks = {observer},
                       .check_gradients = {.every = 0}});

    if (steps_per_epoch > 0) {
      EXPECT_THAT(lengths, Each(7));
      // The 21 steps are three passes of 11 batches, as below, and 10 batches of the fourth.
      for (const auto& [sample, times] : loaded) EXPECT_TRUE(times == 3 || times == 4) << sample << ": " << times;
      continue;
    }
    EXPECT_THAT(loaded, SizeIs(53));
    EXPECT_THAT(loaded, Each(Pair(testing::_, 3)));
    // 2 2 3 3 1, then 1 1 4 4 1 and 2 2 2 2 2 1.
    EXPECT_THAT(lengths, ElementsAre(5, 5, 6));
  }
}

TEST(GlobalBatch, ScalesTheLearningRateWhereAsked) {
  GlobalBatch scaled = kPerReplica;
  scaled.rate_for_replicas = 1;
  const auto sgd = std::make_shared<SGD>(0.02F);
  const auto twice = std::make_shared<SGD>(0.04F);

  expect_equal(outcome_with({.replicas = 2}, {.options = {.epochs = 2, .global_batch = scaled}, .optimizer = sgd}),
               outcome_with({}, {.batch = 10, .optimizer = twice}));
  scaled.rate_for_replicas = 2;
  expect_equal(outcome_with({.replicas = 2}, {.options = {.epochs = 2, .global_batch = scaled}, .optimizer = sgd}),
               outcome_with({}, {.batch = 10, .optimizer = sgd}));
}

TEST(GlobalBatch, ScalesEachRateOfASchedule) {
  GlobalBatch scaled = kPerReplica;
  scaled.rate_for_replicas = 1;

  expect_equal(outcome_with({.replicas = 2}, {.options = {.epochs = 2, .global_batch = scaled},
                                              .optimizer = std::make_shared<SGD>(CosineDecay(0.02F, 12))}),
               outcome_with({}, {.batch = 10, .optimizer = std::make_shared<SGD>(CosineDecay(0.04F, 12))}));
}

// A callback that halves the rate that it reads must not halve a rate that was scaled already.
TEST(GlobalBatch, ShowsCallbacksTheRateBeforeItIsScaled) {
  const auto halves = []() -> std::vector<CallbackHandle> {
    return {LambdaCallback({.on_epoch_end = [](TrainingContext& context, const Logs&) {
      context.set_learning_rate(*context.learning_rate() / 2);
    }})};
  };
  GlobalBatch scaled = kPerReplica;
  scaled.rate_for_replicas = 1;

  expect_equal(outcome_with({.replicas = 2}, {.options = {.epochs = 2, .global_batch = scaled},
                                              .callbacks = halves,
                                              .optimizer = std::make_shared<SGD>(0.02F)}),
               outcome_with({}, {.batch = 10, .callbacks = halves, .optimizer = std::make_shared<SGD>(0.04F)}));
}

TEST(GlobalBatch, IsAChoiceOfTheRun) {
  const TemporaryFolder folder;
  outcome_with({.run_directory = folder.path()}, {.options = {.epochs = 2, .global_batch = kPerReplica}});

  EXPECT_THAT(sentence_thrown_by([&] { outcome_with({.run_directory = folder.path()}, {}); }),
              HasSubstr("call 1 of the Trainer: global_batch was \"per_replica with rate_for_replicas = 0\" and is "
                        "\"fixed\""));
}

TEST(GlobalBatch, RefusesAListThatTheRunDidNotFollow) {
  const TemporaryFolder folder;
  const auto train = [&](const GlobalBatch& batch, std::int64_t epochs) {
    outcome_with({.run_directory = folder.path()}, {.options = {.epochs = epochs, .global_batch = batch}});
  };
  train(replay_of({{0, 2}, {3, 1}}), 1);

  EXPECT_THAT(sentence_thrown_by([&] {
                train(replay_of({{0, 2}}), 2);
              }),
              HasSubstr("the step after 3 updates had the batch of 1 replicas, and the list has 2"));
}

TEST(GlobalBatch, RefusesOptionsThatSayNothing) {
  EXPECT_THAT(refusal({.global_batch = {.rate_for_replicas = 2}}), HasSubstr("a fixed batch, which neither changes"));
  EXPECT_THAT(refusal({.global_batch = {.policy = BatchPolicy::per_replica, .rate_for_replicas = -1}}),
              HasSubstr("rate_for_replicas = -1"));
  EXPECT_THAT(refusal({.global_batch = replay_of({{4, 1}, {2, 2}})}), HasSubstr("step 2 comes after step 4"));
  EXPECT_THAT(refusal({.global_batch = replay_of({{4, 1}})}), HasSubstr("begins at step 4, and fit() is at step 0"));
}

TEST(GlobalBatch, ScalesTheRateAfterACompile) {
  const auto train = [](int rate_for_replicas) {
    return outcomes_of({}, [&](Replica& replica) {
      const Sequential model = small_model();
      Trainer trainer(replica, model, Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
      trainer.fit(small_data().batch(5), {.epochs = 1});
      trainer.compile(model, Adam(0.01F));
      const FitResult fit = trainer.fit(
          small_data().batch(5),
          {.epochs = 1, .global_batch = {.policy = BatchPolicy::per_replica, .rate_for_replicas = rate_for_replicas}});
      return Outcome{trainer.weights_digest().hex(), trainer.step(), fit.results, {}, fit.history};
    })[0];
  };

  expect_equal(train(1), train(0));
}

TEST(GlobalBatch, RefusesStepsOfMoreBatchesThanThereAre) {
  const Asked asked{.batch = 30, .options = {.epochs = 1, .accumulate = 4}, .drop_remainder = true};

  EXPECT_THAT(sentence_thrown_by([&] { outcome_with({}, asked); }), HasSubstr("accumulate fewer batches"));
}

TEST(GlobalBatch, IsThatOfFewerReplicasWhereThereAreNoMoreBatches) {
  const EpochPlan plan(small_data().batch(25, {.drop_remainder = true}), {.global_batch = kPerReplica});

  EXPECT_EQ(plan.data_for(4).batch_size(), 50);
  EXPECT_EQ(plan.data_for(4).batches(), 1);
}

TEST(GlobalBatch, IsRecordedOnlyWhereItIsNotFixed) {
  const TemporaryFolder folder;
  outcome_with({.replicas = 2, .run_directory = folder.path()}, {});

  EXPECT_THAT(recorded_batches(folder / savepoint_files(folder.path()).back()), IsEmpty());
}

}  // namespace
}  // namespace holdfast
