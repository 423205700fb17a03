// fit() ends with the weights of its best epoch where a callback asks for it, whatever fails meanwhile.

#include "train/state/kept_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "holdfast/holdfast.h"
#include "support/program.h"
#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "support/thrown.h"
#include "train/state/resume.h"
#include "train/state/snapshot.h"
#include "unit/train/support/played_callbacks.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// The highest loss is that of an early epoch, so the best weights are not simply the last ones.
EarlyStopping restoring(std::int64_t patience = 100) {
  return EarlyStopping(
      {.monitor = "val_loss", .best = Best::highest, .patience = patience, .restore_best_weights = true});
}

Outcome restored_outcome(const ThreadRun& run, std::int64_t fail_at = 0, std::int64_t epochs = 3) {
  return outcomes_of(run, [&](Replica& replica) {
    std::vector<CallbackHandle> callbacks = {restoring(), FailAt(fail_at)};
    if (!run.run_directory.empty()) callbacks.emplace_back(ModelCheckpoint({.every_steps = 4, .keep_last = 0}));
    return train_small(replica, callbacks, epochs);
  })[0];
}

std::int64_t highest_epoch(const std::vector<Logs>& history) {
  const auto highest = std::ranges::max_element(
      history, [](const Logs& a, const Logs& b) { return a.at("val_loss") < b.at("val_loss"); });
  return highest - history.begin();
}

std::vector<std::string> kept_arrays_of(const std::string& path) {
  std::vector<std::string> names;
  for (const SnapshotArray& array : read_savepoint(posix_file_system(), path).arrays) {
    if (array.name.starts_with("kept/")) names.push_back(array.name);
  }
  return names;
}

Trainer small_restoring_trainer(Replica& replica) {
  return {replica, small_model(), Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true})};
}

}  // namespace

TEST(KeptWeights, AreThoseOfTheBestEpochAtTheEnd) {
  const TemporaryFolder folder;
  train_on_threads({.replicas = 2, .run_directory = folder.path()}, [&](Replica& replica) {
    Trainer trainer = small_restoring_trainer(replica);
    const FitResult fit =
        trainer.fit(small_data().shuffle().batch(10), {.epochs = 4,
                                                       .validation = small_data(20).batch(7),
                                                       .accept_shared_samples = true,
                                                       .callbacks = {ModelCheckpoint({.keep_last = 0}), restoring()}});
    ASSERT_LT(highest_epoch(fit.history), 3);
    const std::string ended = trainer.weights_digest().hex();
    // Validation sees the moving means and variances, too.
    EXPECT_EQ(trainer.evaluate(small_data(20).batch(7)).at("loss"),
              fit.history[static_cast<std::size_t>(highest_epoch(fit.history))].at("val_loss"));

    trainer.load_weights(folder / savepoint_name(6 * (highest_epoch(fit.history) + 1)));
    EXPECT_EQ(trainer.weights_digest().hex(), ended);
  });
}

// The averages of the last epoch were handed to the model next to the weights of the best one.
TEST(KeptWeights, ComeWithTheAveragesOfTheirEpoch) {
  train_on_threads({}, [&](Replica& replica) {
    Trainer trainer(replica, small_model(), Adam({.learning_rate = 0.01F, .use_ema = true, .ema_momentum = 0.5F}),
                    SparseCategoricalCrossentropy({.from_logits = true}));
    const FitResult fit = trainer.fit(small_data().shuffle().batch(10), {.epochs = 4,
                                                                         .validation = small_data(20).batch(7),
                                                                         .accept_shared_samples = true,
                                                                         .callbacks = {SwapEMAWeights(), restoring()}});
    ASSERT_LT(highest_epoch(fit.history), 3);

    EXPECT_EQ(trainer.evaluate(small_data(20).batch(7), Weights::averaged).at("loss"),
              fit.history[static_cast<std::size_t>(highest_epoch(fit.history))].at("val_loss"));
  });
}

TEST(KeptWeights, AreTheSameOnAnyNumberOfReplicas) {
  const Outcome expected = restored_outcome({.replicas = 1});
  EXPECT_NE(expected.digest, outcome_of({.replicas = 1}).digest);

  for (const int replicas : {2, 4}) expect_equal(restored_outcome({.replicas = replicas}), expected);
}

// Before an epoch was kept, after it, and in the last epoch; the savepoint before may be of any of these moments.
TEST(KeptWeights, SurviveWhatEndsTheRun) {
  const Outcome expected = restored_outcome({.replicas = 2});
  for (const std::int64_t step : {3, 7, 9, 13, 17}) {
    for (const int replicas : {1, 3}) {
      SCOPED_TRACE("failure at step " + std::to_string(step) + ", going on with " + std::to_string(replicas));
      const TemporaryFolder folder;
      EXPECT_THROW(restored_outcome({.replicas = 2, .run_directory = folder.path()}, step), std::runtime_error);

      expect_equal(restored_outcome({.replicas = replicas, .run_directory = folder.path()}), expected);
    }
  }
}

TEST(KeptWeights, AreInTheLastSavepointWithTheMetricsOfTheirEpoch) {
  const TemporaryFolder folder;
  const Outcome outcome = restored_outcome({.run_directory = folder.path()});
  const std::string last = folder / savepoint_files(folder.path()).back();

  const Snapshot saved = read_savepoint(posix_file_system(), last);

  const Logs& best = outcome.history[static_cast<std::size_t>(highest_epoch(outcome.history))];
  EXPECT_EQ(saved.state.calls.front().kept_epoch, highest_epoch(outcome.history));
  EXPECT_THAT(savepoint_metadata(posix_file_system(), last), HasSubstr("\"use\": \"restored\""));
  const std::string path_of_best = best_savepoint(folder.path(), "val_loss", Best::highest);
  EXPECT_EQ(path_of_best, folder / savepoint_name(6 * (highest_epoch(outcome.history) + 1)));
  Replica alone = Replica::alone();
  Trainer trainer(alone, load_model(last), Adam(), SparseCategoricalCrossentropy({.from_logits = true}));
  // One shard adds in another order than the four of the run.
  EXPECT_NEAR(trainer.evaluate(small_data(20).batch(7)).at("loss"), best.at("val_loss"), 1e-5);
}

// The longer run goes on from the weights of the last epoch, and restores the best ones at its own end.
TEST(KeptWeights, DoNotChangeWhatMoreEpochsLeadTo) {
  const TemporaryFolder undisturbed;
  const Outcome expected = restored_outcome({.replicas = 2, .run_directory = undisturbed.path()}, 0, 5);
  const TemporaryFolder folder;
  restored_outcome({.replicas = 2, .run_directory = folder.path()}, 0, 3);

  expect_equal(restored_outcome({.replicas = 1, .run_directory = folder.path()}, 0, 5), expected);

  EXPECT_TRUE(read_file(folder / savepoint_files(folder.path()).back()) ==
              read_file(undisturbed / savepoint_files(undisturbed.path()).back()));
}

TEST(KeptWeights, AreRestoredWhereEarlyStoppingEndsTheTraining) {
  const Outcome stopped = outcomes_of({}, [](Replica& replica) { return train_small(replica, {restoring(1)}, 9); })[0];
  ASSERT_LT(stopped.history.size(), 9U);

  expect_equal(restored_outcome({}, 0, static_cast<std::int64_t>(stopped.history.size())), stopped);
}

TEST(KeptWeights, TakeRoomUntilAnotherCallChangesTheWeights) {
  const TemporaryFolder folder;
  train_on_threads({.run_directory = folder.path()}, [&](Replica& replica) {
    Trainer trainer = small_restoring_trainer(replica);
    const Dataset data = small_data().batch(10);
    trainer.fit(data, {.callbacks = {EarlyStopping({.monitor = "loss", .restore_best_weights = true})}});
    trainer.save(folder / "kept.h5");
    trainer.fit(data);
    trainer.save(folder / "later.h5");
  });

  const std::vector<std::string> kept = kept_arrays_of(folder / "kept.h5");
  EXPECT_EQ(kept.size(), 10U) << testing::PrintToString(kept);
  EXPECT_THAT(kept_arrays_of(folder / "later.h5"), testing::IsEmpty());
}

// A callback may ask in each epoch for a savepoint of that epoch, the last one included.
TEST(KeptWeights, AreNotInWhatWasAskedForBeforeTheEnd) {
  const TemporaryFolder folder;
  const auto export_epochs = [&](TrainingContext& context, const Logs&) {
    context.save(folder / ("epoch-" + std::to_string(context.epoch()) + ".h5"), {.weights_only = true});
  };
  std::string ended;
  train_on_threads({.run_directory = folder.path()}, [&](Replica& replica) {
    Trainer trainer = small_restoring_trainer(replica);
    trainer.fit(small_data().batch(10), {.epochs = 3,
                                         .validation = small_data(20).batch(7),
                                         .accept_shared_samples = true,
                                         .callbacks = {restoring(), LambdaCallback{{.on_epoch_end = export_epochs}}}});
    ended = trainer.weights_digest().hex();
    for (const int epoch : {0, 2}) {
      trainer.load_weights(folder / ("epoch-" + std::to_string(epoch) + ".h5"));
      EXPECT_EQ(trainer.weights_digest().hex() == ended, epoch == 0) << "epoch " << epoch;
    }
  });
}

TEST(KeptWeights, AreRefusedWhereTwoCallbacksWouldRestoreThem) {
  const std::string sentence = sentence_thrown_by([] {
    train_on_threads({}, [](Replica& replica) {
      train_small(replica, {restoring(), EarlyStopping({.monitor = "loss", .restore_best_weights = true})});
    });
  });

  EXPECT_THAT(sentence,
              StartsWith("the callbacks \"early_stopping/val_loss\" and \"early_stopping/loss\" of one fit()"));
}

}  // namespace holdfast
