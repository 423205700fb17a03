// Epochs of a number of steps, and validation on some epochs. Outcomes are compared exactly.

#include "train/fit/epoch_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <stdexcept>

#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "support/thrown.h"
#include "train/state/resume.h"
#include "unit/train/support/played_callbacks.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Six batches a pass.
Dataset six_batches() {
  return small_data().shuffle().batch(10);
}

Outcome train_planned(Replica& replica, const FitOptions& options, const Dataset& data = six_batches()) {
  Trainer trainer(replica, small_model(), Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
  const FitResult fit = trainer.fit(data, options);
  return {trainer.weights_digest().hex(), trainer.step(), fit.results, {}, fit.history};
}

// Each replica has callbacks of its own, as processes have.
using CallbacksOfAReplica = std::function<std::vector<CallbackHandle>()>;

Outcome planned_outcome(const ThreadRun& run, const FitOptions& options, const CallbacksOfAReplica& callbacks) {
  return outcomes_of(run, [&](Replica& replica) {
    FitOptions own = options;
    own.callbacks = callbacks();
    return train_planned(replica, own);
  })[0];
}

Outcome planned_outcome(const ThreadRun& run, const FitOptions& options, const Dataset& data = six_batches()) {
  return outcomes_of(run, [&](Replica& replica) { return train_planned(replica, options, data); })[0];
}

std::vector<bool> validated_epochs(const Outcome& outcome) {
  std::vector<bool> validated;
  for (const Logs& logs : outcome.history) validated.push_back(logs.contains("val_loss"));
  return validated;
}

LambdaCallback stops_before(std::int64_t step) {
  LambdaCallbackOptions stops{.name = "stops"};
  stops.on_step_begin = [step](TrainingContext& context) {
    if (context.step() == step) context.stop_training();
  };
  return LambdaCallback(stops);
}

TEST(EpochPlan, GoesOnInTheNextPassWhereAnEpochEnds) {
  const EpochPlan plan(six_batches(), {.steps_per_epoch = 4});

  EXPECT_EQ(plan.steps(), 4);
  EXPECT_EQ(plan.position(0, 3).pass, 0);
  EXPECT_EQ(plan.position(0, 3).batch, 3);
  EXPECT_EQ(plan.position(1, 2).pass, 1);
  EXPECT_EQ(plan.position(1, 2).batch, 0);
  EXPECT_EQ(plan.position(2, 0).pass, 1);
  EXPECT_EQ(plan.position(2, 0).batch, 2);
  EXPECT_EQ(plan.end_pass(2), 2);
  EXPECT_EQ(plan.end_pass(3), 2);
}

TEST(EpochPlan, IsAPassOverTheDataWithoutANumberOfSteps) {
  const EpochPlan plan(six_batches(), {});

  EXPECT_EQ(plan.steps(), 6);
  EXPECT_EQ(plan.position(2, 5).pass, 2);
  EXPECT_EQ(plan.position(2, 5).batch, 5);
  EXPECT_EQ(plan.end_pass(3), 3);
}

TEST(EpochPlan, TrainsOnTheSameBatchesHoweverEpochsCutThem) {
  // Twelve steps are two passes.
  const Outcome passes = planned_outcome({}, {.epochs = 2});

  for (const std::int64_t steps : {1, 4, 12}) {
    SCOPED_TRACE(steps);
    const Outcome cut = planned_outcome({}, {.epochs = 12 / steps, .steps_per_epoch = steps});
    EXPECT_EQ(cut.digest, passes.digest);
    EXPECT_EQ(cut.step, 12);
    EXPECT_EQ(cut.history.size(), static_cast<std::size_t>(12 / steps));
  }
}

TEST(EpochPlan, GivesTheSameBitsOnAnyNumberOfReplicas) {
  const FitOptions options{.epochs = 3, .steps_per_epoch = 4};
  const Outcome expected = planned_outcome({}, options);

  for (const int replicas : {2, 3}) expect_equal(planned_outcome({.replicas = replicas}, options), expected);
  expect_equal(planned_outcome({.replicas = 2}, options, six_batches().prefetch(3, {.threads = 2})), expected);
}

// Within an epoch, at its end, and after the first pass.
TEST(EpochPlan, GoesOnAfterAFailureWithTheSameBits) {
  FitOptions options{.epochs = 3, .validation = small_data(20).batch(7), .validation_every = 2, .steps_per_epoch = 4};
  const Outcome expected = planned_outcome({}, options);
  for (const std::int64_t step : {2, 4, 7, 9}) {
    SCOPED_TRACE(step);
    const TemporaryFolder folder;
    const CallbacksOfAReplica failing = [step]() -> std::vector<CallbackHandle> {
      return {ModelCheckpoint({.every_steps = 1}), FailAt(step)};
    };
    EXPECT_THROW(planned_outcome({.replicas = 2, .run_directory = folder.path()}, options, failing),
                 std::runtime_error);

    const CallbacksOfAReplica going_on = []() -> std::vector<CallbackHandle> {
      return {ModelCheckpoint({.every_steps = 1})};
    };
    expect_equal(planned_outcome({.replicas = 3, .run_directory = folder.path()}, options, going_on), expected);
  }
}

TEST(EpochPlan, GoesOnForMoreEpochsAsIfTheyHadBeenAskedForAtFirst) {
  const TemporaryFolder folder;
  planned_outcome({.run_directory = folder.path()}, {.epochs = 2, .steps_per_epoch = 4});

  const Outcome extended = planned_outcome({.run_directory = folder.path()}, {.epochs = 5, .steps_per_epoch = 4});

  expect_equal(extended, planned_outcome({}, {.epochs = 5, .steps_per_epoch = 4}));
}

TEST(EpochPlan, IsAChoiceOfTheRun) {
  const TemporaryFolder folder;
  planned_outcome({.run_directory = folder.path()}, {.epochs = 1, .steps_per_epoch = 4});

  const std::string sentence = sentence_thrown_by(
      [&] { planned_outcome({.run_directory = folder.path()}, {.epochs = 3, .steps_per_epoch = 5}); });

  EXPECT_THAT(sentence, HasSubstr("call 1 of the Trainer: steps_per_epoch was 4 and is 5"));
}

TEST(EpochPlan, ShowsCallbacksTheStepsOfAnEpoch) {
  std::vector<std::int64_t> seen;
  LambdaCallbackOptions calls{.name = "seen"};
  calls.on_step_end = [&](TrainingContext& context, const Logs&) {
    seen.push_back(context.batch_in_epoch());
    EXPECT_EQ(context.batches_per_epoch(), 4);
  };

  planned_outcome({}, {.epochs = 2, .steps_per_epoch = 4, .callbacks = {LambdaCallback(calls)}});

  EXPECT_THAT(seen, ElementsAre(1, 2, 3, 4, 1, 2, 3, 4));
}

TEST(Fit, TellsCallbacksOfAStepBeforeItBegins) {
  std::vector<std::string> calls;
  const auto note = [&](const std::string& call) {
    return [&calls, call](TrainingContext& context) { calls.push_back(call + std::to_string(context.step())); };
  };
  LambdaCallbackOptions told{.on_epoch_begin = note("epoch "), .on_step_begin = note("begun ")};
  told.on_step_end = [&](TrainingContext& context, const Logs&) { note("done ")(context); };

  planned_outcome({}, {.epochs = 2, .steps_per_epoch = 2, .callbacks = {LambdaCallback(told)}});

  EXPECT_THAT(calls, ElementsAre("epoch 0", "begun 0", "done 1", "begun 1", "done 2", "epoch 2", "begun 2", "done 3",
                                 "begun 3", "done 4"));
}

TEST(Fit, EndsAfterTheStepBeforeWhichACallbackAskedForIt) {
  for (const std::int64_t step : {0, 1, 3, 4, 7}) {
    SCOPED_TRACE(step);
    const Outcome outcome = planned_outcome({.replicas = 2}, {.epochs = 2, .steps_per_epoch = 4},
                                            [&] { return std::vector<CallbackHandle>{stops_before(step)}; });

    EXPECT_EQ(outcome.step, step + 1);
  }
}

// The savepoint before that step is the only one that knows of the request.
TEST(Fit, EndsAfterThatStepAlsoWhereItIsMadeByALaterStart) {
  const TemporaryFolder folder;
  const auto train = [&](std::int64_t fail_at) {
    return planned_outcome({.replicas = 2, .run_directory = folder.path()}, {.epochs = 2, .steps_per_epoch = 4}, [&] {
      const auto is_saved = [&folder] { return std::filesystem::exists(folder / savepoint_name(2)); };
      return std::vector<CallbackHandle>{stops_before(2), ModelCheckpoint({.every_steps = 1}),
                                         FailAt(fail_at, is_saved)};
    });
  };
  EXPECT_THROW(train(3), std::runtime_error);

  EXPECT_EQ(train(0).step, 3);
}

TEST(Fit, ValidatesOnEachEpochOfANumber) {
  const FitOptions options{.epochs = 5, .validation = small_data(20).batch(7), .validation_every = 2};

  const Outcome outcome = planned_outcome({.replicas = 2}, options);

  EXPECT_THAT(validated_epochs(outcome), ElementsAre(false, true, false, true, false));
}

TEST(Fit, ChangesNoBitWithFewerValidations) {
  FitOptions options{.epochs = 4, .validation = small_data(20).batch(7)};
  const Outcome each = planned_outcome({}, options);
  options.validation_every = 4;

  const Outcome last = planned_outcome({}, options);

  EXPECT_EQ(last.digest, each.digest);
  EXPECT_EQ(last.results, each.results);
}

// With a patience of one epoch it would stop in an epoch without validation, if that counted.
TEST(Fit, LetsCallbacksActInEpochsWithValidationAlone) {
  const TemporaryFolder folder;
  std::vector<double> values;
  LambdaCallbackOptions calls{.name = "values"};
  calls.on_epoch_end = [&](TrainingContext& context, const Logs& logs) {
    EXPECT_EQ(context.is_validated(), logs.contains("val_loss"));
    if (logs.contains("val_loss")) values.push_back(logs.at("val_loss"));
  };
  FitOptions options{.epochs = 12, .validation = small_data(20).batch(7), .validation_every = 3};
  options.callbacks = {EarlyStopping({.min_delta = 1e6, .patience = 2}), ReduceLROnPlateau({.patience = 1}),
                       ModelCheckpoint({.every_epochs = 0, .best_by = "val_loss"}), LambdaCallback(calls)};

  const Outcome outcome = planned_outcome({.run_directory = folder.path()}, options);

  // The first value is the best; the two after it are the patience.
  ASSERT_EQ(values.size(), 3U);
  EXPECT_EQ(outcome.history.size(), 9U);
  const auto best = std::min_element(values.begin(), values.end()) - values.begin();
  EXPECT_EQ(best_savepoint(folder.path(), "val_loss"), folder.path() + "/" + savepoint_name((best + 1) * 3 * 6));
}

TEST(Fit, RefusesNumbersOfEpochsAndStepsThatMakeNoSense) {
  const auto refusal = [](const FitOptions& options) {
    return sentence_thrown_by([&] { planned_outcome({}, options); });
  };

  EXPECT_THAT(refusal({.validation_every = 0}), HasSubstr("validation_every = 0"));
  EXPECT_THAT(refusal({.steps_per_epoch = -1}), HasSubstr("steps_per_epoch = -1"));
  EXPECT_THAT(refusal({.accumulate = 0}), HasSubstr("accumulate = 0"));
  EXPECT_THAT(refusal({.accumulate = std::int64_t{1} << 40}), HasSubstr("with 4 shards at most"));
}

}  // namespace
}  // namespace holdfast
