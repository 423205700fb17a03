// Weights of a file become those of the run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "holdfast/holdfast.h"
#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "support/thrown.h"
#include "unit/train/support/played_callbacks.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

Trainer small_trainer(Replica& replica) {
  return {replica,
          small_model(),
          Adam(0.01F),
          SparseCategoricalCrossentropy({.from_logits = true}),
          {SparseCategoricalAccuracy()}};
}

Dataset small_batches() {
  return small_data().shuffle().batch(10);
}

// Writes the weights of a training of `epochs` epochs, and returns their digest.
std::string write_weights(const std::string& path, std::int64_t epochs) {
  std::string digest;
  train_on_threads({.seed = 11}, [&](Replica& replica) {
    Trainer trainer = small_trainer(replica);
    trainer.fit(small_batches(), {.epochs = epochs});
    trainer.save(path);
    digest = trainer.weights_digest().hex();
  });
  return digest;
}

// Trains, goes on with the weights of the file, evaluates them and trains again.
Outcome train_with_weights_of(const std::string& path, const ThreadRun& run, std::int64_t fail_at = -1) {
  const std::vector<Outcome> outcomes = outcomes_of(run, [&](Replica& replica) {
    Trainer trainer = small_trainer(replica);
    const std::vector<CallbackHandle> callbacks = {ModelCheckpoint({.every_steps = 2}), FailAt(fail_at)};
    trainer.fit(small_batches(), {.epochs = 2, .callbacks = callbacks});
    trainer.load_weights(path);
    const Logs evaluation = trainer.evaluate(small_batches());
    const FitResult fit = trainer.fit(small_batches(), {.epochs = 2, .callbacks = callbacks});
    return Outcome{trainer.weights_digest().hex(), trainer.step(), fit.results, evaluation, fit.history};
  });
  return outcomes.front();
}

}  // namespace

TEST(LoadWeights, MakesTheModelThatOfTheFile) {
  const TemporaryFolder folder;
  const std::string path = folder / "weights.h5";
  const std::string expected = write_weights(path, 1);

  train_on_threads({.replicas = 2}, [&](Replica& replica) {
    Trainer trainer = small_trainer(replica);
    EXPECT_NE(trainer.weights_digest().hex(), expected);
    trainer.load_weights(path);
    EXPECT_EQ(trainer.weights_digest().hex(), expected);
    // Moving means and variances are part of them.
    const Model model = load_model(path);
    Replica alone = Replica::alone();
    Trainer of_the_file(alone, model, Adam(), SparseCategoricalCrossentropy({.from_logits = true}),
                        {SparseCategoricalAccuracy()});
    EXPECT_NEAR(trainer.evaluate(small_batches()).at("loss"), of_the_file.evaluate(small_batches()).at("loss"), 1e-6);
  });
}

TEST(LoadWeights, IsACallOfTheRunThatAFailureRepeats) {
  const TemporaryFolder folder;
  const std::string path = folder / "weights.h5";
  write_weights(path, 3);
  const TemporaryFolder undisturbed;
  const Outcome expected = train_with_weights_of(path, {.replicas = 2, .run_directory = undisturbed.path()});
  const std::int64_t half = expected.step / 2;
  // In the first fit(), in the first and in a later step after the call.
  for (const std::int64_t step : {half - 1, half + 1, half + 4}) {
    for (const int replicas : {1, 3}) {
      SCOPED_TRACE("failure at step " + std::to_string(step) + ", going on with " + std::to_string(replicas));
      const TemporaryFolder run;
      EXPECT_THROW(train_with_weights_of(path, {.replicas = 2, .run_directory = run.path()}, step), std::runtime_error);

      expect_equal(train_with_weights_of(path, {.replicas = replicas, .run_directory = run.path()}), expected);
    }
  }
}

TEST(LoadWeights, IsRefusedIfTheFileHasOtherWeightsByThen) {
  const TemporaryFolder folder;
  const std::string path = folder / "weights.h5";
  write_weights(path, 3);
  const TemporaryFolder run;
  train_with_weights_of(path, {.run_directory = run.path()});
  write_weights(path, 1);

  const std::string sentence = sentence_thrown_by([&] { train_with_weights_of(path, {.run_directory = run.path()}); });

  EXPECT_THAT(sentence, HasSubstr("weights was"));
}

TEST(LoadWeights, ChangesNothingIfTheFileDoesNotFit) {
  const TemporaryFolder folder;
  const std::string path = folder / "weights.h5";
  train_on_threads({}, [&](Replica& replica) {
    const Sequential other{Input{4}, Dense{7}};
    Trainer trainer(replica, other, SGD(), MeanSquaredError());
    trainer.save(path);
  });
  train_on_threads({}, [&](Replica& replica) {
    Trainer trainer = small_trainer(replica);
    const std::string before = trainer.weights_digest().hex();

    const std::string sentence = sentence_thrown_by([&] { trainer.load_weights(path); });
    EXPECT_THAT(sentence, HasSubstr("do not fit: the model has model/"));
    EXPECT_EQ(code_thrown_by([&] { trainer.load_weights(folder / "nothing.h5"); }), ErrorCode::not_found);
    EXPECT_EQ(trainer.weights_digest().hex(), before);
    EXPECT_NO_THROW(trainer.evaluate(small_batches()));
  });
}

TEST(LoadWeights, AllowsTheBestEpochToBeEvaluatedInTheSameProgram) {
  const TemporaryFolder run;
  train_on_threads({.replicas = 2, .run_directory = run.path()}, [&](Replica& replica) {
    Trainer trainer = small_trainer(replica);
    // The highest, so that it is not simply the last one.
    const FitResult fit =
        trainer.fit(small_batches(), {.epochs = 4,
                                      .validation = small_data(30).batch(10),
                                      .accept_shared_samples = true,
                                      .callbacks = {ModelCheckpoint({.best_by = "val_loss", .best = Best::highest})}});
    trainer.load_weights(best_savepoint(run.path(), "val_loss", Best::highest));

    double highest = 0;
    for (const Logs& epoch : fit.history) highest = std::max(highest, epoch.at("val_loss"));
    EXPECT_EQ(trainer.evaluate(small_data(30).batch(10)).at("loss"), highest);
  });
}

}  // namespace holdfast
