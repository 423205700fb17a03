// Trainings that end early and go on from what they left.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "support/program.h"
#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "unit/train/support/played_callbacks.h"
#include "unit/train/support/played_supervision.h"
#include "unit/train/support/small_training.h"

namespace holdfast {

TEST(Trainer, GoesOnFromTheNewestSavepointWithTheSameBits) {
  const Outcome expected = outcome_of({.replicas = 2});
  // Before any savepoint, after one in the middle of an epoch, at the end of an epoch, in the second epoch.
  for (const std::int64_t step : {1, 4, 6, 9}) {
    for (const int replicas : {1, 3}) {
      SCOPED_TRACE("failure at step " + std::to_string(step) + ", going on with " + std::to_string(replicas));
      const TemporaryFolder folder;
      const MakeCallbacks failing = [&]() -> std::vector<CallbackHandle> {
        return {ModelCheckpoint({.every_steps = 2}), FailAt(step)};
      };
      EXPECT_THROW(outcome_of({.replicas = 2, .run_directory = folder.path()}, failing), std::runtime_error);

      expect_equal(outcome_of({.replicas = replicas, .run_directory = folder.path()}, checkpoint_every_two), expected);
    }
  }
}

TEST(Trainer, BringsBackTheDeclaredStateOfCallbacks) {
  const auto undisturbed = std::make_shared<SumOfLosses>();
  outcome_of({}, [&]() -> std::vector<CallbackHandle> { return {undisturbed}; });
  const TemporaryFolder folder;
  const MakeCallbacks failing = [&]() -> std::vector<CallbackHandle> {
    return {ModelCheckpoint({.every_steps = 3}), SumOfLosses(), FailAt(8)};
  };
  EXPECT_THROW(outcome_of({.run_directory = folder.path()}, failing), std::runtime_error);

  const auto recovered = std::make_shared<SumOfLosses>();
  outcome_of({.run_directory = folder.path()}, [&]() -> std::vector<CallbackHandle> {
    return {ModelCheckpoint({.every_steps = 3}), recovered};
  });

  EXPECT_EQ(recovered->sum, undisturbed->sum);
  EXPECT_EQ(recovered->epochs, undisturbed->epochs);
}

// Ends before the first savepoint, within an epoch, after the last savepoint's epoch, and before the end of the last
// epoch.
TEST(Trainer, KeepsARecordOfEpochsWithoutGapsAndRepetitions) {
  const auto logging = [](const TemporaryFolder& folder, std::int64_t save_every, std::int64_t fail_at) {
    return outcomes_of({.replicas = 2, .run_directory = folder.path()}, [&](Replica& replica) {
      return train_small(
          replica, {ModelCheckpoint({.every_steps = save_every, .every_epochs = 0}), CSVLogger(), FailAt(fail_at)}, 4);
    });
  };
  const TemporaryFolder undisturbed;
  logging(undisturbed, 100, 0);
  const std::string expected = read_file(undisturbed / "log.csv");
  ASSERT_EQ(std::count(expected.begin(), expected.end(), '\n'), 5) << expected;

  for (const std::int64_t fail_at : {3, 7, 17, 23}) {
    SCOPED_TRACE("failure at step " + std::to_string(fail_at));
    const TemporaryFolder folder;
    EXPECT_THROW(logging(folder, 5, fail_at), std::runtime_error);

    logging(folder, 5, 0);

    EXPECT_EQ(read_file(folder / "log.csv"), expected);
  }
}

TEST(Trainer, ReturnsTheRecordedResultsOfAFinishedRun) {
  const TemporaryFolder folder;
  const Outcome first = outcome_of({.run_directory = folder.path()}, checkpoint);
  const std::vector<std::string> files = savepoint_files(folder.path());

  const Outcome second = outcome_of({.run_directory = folder.path()}, []() -> std::vector<CallbackHandle> {
    return {ModelCheckpoint(), FailAt(1)};
  });

  expect_equal(second, first);
  EXPECT_EQ(savepoint_files(folder.path()), files);
}

TEST(Trainer, PassesFinishedCallsAndJoinsTheRunningOne) {
  const auto two_fits = [](Replica& replica, std::vector<CallbackHandle> callbacks) {
    Trainer trainer(replica, small_model(), SGD(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
    const FitResult first = trainer.fit(small_data().batch(10), {.epochs = 1, .callbacks = {ModelCheckpoint()}});
    const Logs between = trainer.evaluate(small_data(30).batch(10));
    const FitResult second =
        trainer.fit(small_data().shuffle().batch(20), {.epochs = 2, .callbacks = std::move(callbacks)});
    return Outcome{trainer.weights_digest().hex(), trainer.step(), first.results, between, second.history};
  };
  const TemporaryFolder undisturbed;
  const Outcome expected = outcomes_of({.run_directory = undisturbed.path()},
                                       [&](Replica& r) { return two_fits(r, {ModelCheckpoint()}); })[0];
  const TemporaryFolder folder;
  EXPECT_THROW(outcomes_of({.run_directory = folder.path()},
                           [&](Replica& r) {
                             return two_fits(r, {ModelCheckpoint({.every_steps = 1}), FailAt(8)});
                           }),
               std::runtime_error);

  const Outcome outcome =
      outcomes_of({.run_directory = folder.path()}, [&](Replica& r) { return two_fits(r, {ModelCheckpoint()}); })[0];

  expect_equal(outcome, expected);
}

TEST(Trainer, SetsADamagedSavepointAsideAndTakesTheOneBefore) {
  const Outcome expected = outcome_of({});
  const TemporaryFolder folder;
  const MakeCallbacks failing = [&]() -> std::vector<CallbackHandle> {
    return {ModelCheckpoint({.every_steps = 2}), FailAt(9)};
  };
  EXPECT_THROW(outcome_of({.run_directory = folder.path()}, failing), std::runtime_error);
  const std::string newest = folder / savepoint_files(folder.path()).back();
  std::filesystem::resize_file(newest, std::filesystem::file_size(newest) / 2);

  expect_equal(outcome_of({.run_directory = folder.path()}, checkpoint_every_two), expected);

  EXPECT_TRUE(std::filesystem::exists(newest + ".damaged"));
}

TEST(Trainer, GoesOnFromACopyWhenTheRunDirectoryIsLost) {
  const Outcome expected = outcome_of({});
  const TemporaryFolder folder;
  const TemporaryFolder copy;
  const auto events = std::make_shared<Journal>();
  const ThreadRun run{
      .replicas = 2, .run_directory = folder.path(), .savepoint_copies = {copy.path()}, .supervision = events};
  const MakeCallbacks failing = [&]() -> std::vector<CallbackHandle> {
    return {ModelCheckpoint({.every_steps = 2}), FailAt(9)};
  };
  EXPECT_THROW(outcome_of(run, failing), std::runtime_error);
  const std::vector<std::string> copies = savepoint_files(copy.path());
  ASSERT_FALSE(copies.empty());
  for (const std::string& name : folder.names()) std::filesystem::remove(folder / name);

  expect_equal(outcome_of(run, checkpoint_every_two), expected);

  const std::vector<std::string> resumed = events->details("resumed");
  ASSERT_EQ(resumed.size(), 1U);
  EXPECT_NE(resumed[0].find(copy / copies.back()), std::string::npos) << resumed[0];
  // Whether the eighth step was saved before the failure is a matter of chance. If it was, only the folder of copies
  // still has it.
  const std::vector<std::string> saved = savepoint_files(folder.path());
  ASSERT_GE(saved.size(), 2U);
  for (const std::string& name : saved) EXPECT_EQ(read_file(copy / name), read_file(folder / name)) << name;
}

TEST(Trainer, GoesOnFromARequestedSavepointWithTheSameBits) {
  const Outcome expected = outcome_of({});
  for (const std::int64_t step : {3, 5}) {
    const TemporaryFolder folder;
    const auto is_saved = [&] { return !savepoint_files(folder.path()).empty(); };
    const MakeCallbacks failing = [&]() -> std::vector<CallbackHandle> { return {FailAt(9, is_saved)}; };
    const ThreadRun run{.replicas = 2, .run_directory = folder.path(), .supervision = std::make_shared<AskedAt>(step)};
    EXPECT_THROW(outcome_of(run, failing), std::runtime_error);
    ASSERT_EQ(savepoint_files(folder.path()).size(), 1U);

    expect_equal(outcome_of({.run_directory = folder.path()}), expected);
  }
}

TEST(Trainer, GoesOnFromSavepointsOfAnyCompression) {
  const Outcome expected = outcome_of({});
  const TemporaryFolder folder;
  std::int64_t step = 3;
  for (const auto compression :
       {SavepointCompression::none, SavepointCompression::zstd, SavepointCompression::automatic}) {
    const MakeCallbacks failing = [&]() -> std::vector<CallbackHandle> {
      return {ModelCheckpoint({.every_steps = 2, .compression = compression}), FailAt(step)};
    };
    EXPECT_THROW(outcome_of({.run_directory = folder.path()}, failing), std::runtime_error);
    step += 3;
  }

  expect_equal(outcome_of({.run_directory = folder.path()}, checkpoint_every_two), expected);
}

TEST(Trainer, GoesOnWithItsLearningRateSchedule) {
  const auto optimizer = clipping_optimizers()[0];
  const Outcome expected = outcomes_of({}, [&](Replica& r) { return train_with(r, *optimizer); })[0];
  for (const std::int64_t step : {2, 5, 9}) {
    const TemporaryFolder folder;
    const auto train = [&](std::vector<CallbackHandle> callbacks) {
      return outcomes_of({.run_directory = folder.path()},
                         [&](Replica& r) { return train_with(r, *optimizer, callbacks); })[0];
    };
    EXPECT_THROW(train({ModelCheckpoint({.every_steps = 2}), FailAt(step)}), std::runtime_error);

    expect_equal(train({ModelCheckpoint({.every_steps = 2})}), expected);
  }
}

TEST(Trainer, RefusesAnotherScheduleOrOtherClipping) {
  const TemporaryFolder folder;
  const auto train = [&](const Optimizer& optimizer, std::vector<CallbackHandle> callbacks) {
    return outcomes_of({.run_directory = folder.path()},
                       [&](Replica& r) { return train_with(r, optimizer, callbacks); })[0];
  };
  // The first epoch's end leaves a savepoint; a run that fails before its writer has begun leaves nothing.
  const auto is_saved = [&] { return !savepoint_files(folder.path()).empty(); };
  EXPECT_THROW(
      train(Adam{{.learning_rate = CosineDecay{0.01F, 10}, .clip_norm = 1}}, {ModelCheckpoint(), FailAt(8, is_saved)}),
      std::runtime_error);
  ASSERT_EQ(savepoint_files(folder.path()).size(), 1U);

  for (const auto& [other, what] :
       {std::pair{Adam{{.learning_rate = CosineDecay{0.01F, 20}, .clip_norm = 1}}, "decay_steps was 10 and is 20"},
        std::pair{Adam{{.learning_rate = 0.01F, .clip_norm = 1}}, "learning_rate"},
        std::pair{Adam{{.learning_rate = CosineDecay{0.01F, 10}, .clip_norm = 2}}, "clip_norm was 1 and is 2"},
        std::pair{Adam{CosineDecay{0.01F, 10}}, "clip_norm was 1 and is not set"}}) {
    try {
      train(other, {ModelCheckpoint()});
      ADD_FAILURE() << "took " << other.configuration();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::incompatible);
      EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
    }
  }
}

}  // namespace holdfast
