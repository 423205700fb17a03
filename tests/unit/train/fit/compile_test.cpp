// A run goes on with other frozen layers and another optimizer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <stdexcept>

#include "holdfast/base/log.h"
#include "holdfast/holdfast.h"
#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "support/thrown.h"
#include "train/state/snapshot.h"
#include "unit/train/support/played_callbacks.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

using testing::HasSubstr;
using testing::Not;

// Everything before the dense layers.
Model frozen_model() {
  return small_model().frozen("conv2d").frozen("batch_normalization");
}

Dataset compile_batches() {
  return small_data().shuffle().batch(10);
}

const SparseCategoricalCrossentropy& crossentropy() {
  static const SparseCategoricalCrossentropy instance({.from_logits = true});
  return instance;
}

// Trains the head, then all layers at another rate and with another optimizer.
Outcome train_head_then_all(const ThreadRun& run, std::int64_t fail_at = -1, float second_rate = 0.001F) {
  const std::vector<Outcome> outcomes = outcomes_of(run, [&](Replica& replica) {
    Trainer trainer(replica, frozen_model(), Adam(0.01F), crossentropy());
    const std::vector<CallbackHandle> callbacks = {ModelCheckpoint({.every_steps = 2}), FailAt(fail_at)};
    trainer.fit(compile_batches(), {.epochs = 2, .callbacks = callbacks});
    const Logs evaluation = trainer.evaluate(compile_batches());
    trainer.compile(frozen_model().unfrozen(), Adagrad({.learning_rate = second_rate}));
    const FitResult fit = trainer.fit(compile_batches(), {.epochs = 2, .callbacks = callbacks});
    return Outcome{trainer.weights_digest().hex(), trainer.step(), fit.results, evaluation, fit.history};
  });
  return outcomes.front();
}

std::vector<std::string> names_of_arrays(const Snapshot& snapshot, const std::string& prefix) {
  std::vector<std::string> names;
  for (const SnapshotArray& array : snapshot.arrays) {
    if (array.name.starts_with(prefix)) names.push_back(array.name);
  }
  return names;
}

TEST(FrozenLayers, StayAsTheyAreAndHaveNoSlots) {
  const TemporaryFolder folder;
  const Model model = frozen_model();
  train_on_threads({.replicas = 2}, [&](Replica& replica) {
    Trainer trainer(replica, model, Adam(0.01F), crossentropy());
    trainer.save(folder / "before.h5");
    trainer.fit(compile_batches(), {.epochs = 1});
    trainer.save(folder / "after.h5");
  });

  const Model before = load_model(folder / "before.h5");
  const Model after = load_model(folder / "after.h5");
  EXPECT_TRUE(std::ranges::equal(before.buffer_values(), after.buffer_values()));
  EXPECT_FALSE(std::ranges::equal(before.parameter_values(), after.parameter_values()));
  EXPECT_EQ(after.frozen_layers(), (std::vector<std::string>{"conv2d", "batch_normalization"}));
  const Snapshot saved = read_savepoint(posix_file_system(), folder / "after.h5");
  EXPECT_EQ(names_of_arrays(saved, "optimizer/m/"),
            (std::vector<std::string>{"optimizer/m/dense/bias", "optimizer/m/dense/kernel", "optimizer/m/dense_1/bias",
                                      "optimizer/m/dense_1/kernel"}));
  EXPECT_EQ(names_of_arrays(saved, "model/").size(), 10U);
}

TEST(FrozenLayers, HaveTheSameBitsOnAnyNumberOfReplicas) {
  const TemporaryFolder run_alone;
  const Outcome alone = train_head_then_all({.run_directory = run_alone.path()});
  for (const int replicas : {2, 3}) {
    const TemporaryFolder run;
    expect_equal(train_head_then_all({.replicas = replicas, .run_directory = run.path()}), alone);
  }
}

// It trained nothing without a word.
TEST(FrozenLayers, AreWarnedOfOnceACallWhereNothingIsLeftToTrain) {
  std::mutex mutex;
  std::vector<std::string> logged;
  set_log_sink([&](LogLevel level, std::string_view line) {
    const std::lock_guard lock(mutex);
    if (level == LogLevel::warning) logged.emplace_back(line);
  });
  struct Restore {
    ~Restore() { set_log_sink({}); }
  } const restore;
  const Dataset data = compile_batches();
  train_on_threads({.replicas = 2}, [&](Replica& replica) {
    Trainer trainer(replica, small_model().frozen(), SGD(0.1F), crossentropy());
    const std::string before = trainer.weights_digest().hex();
    trainer.fit(data, {.epochs = 2});
    EXPECT_EQ(trainer.weights_digest().hex(), before);
    trainer.compile(frozen_model(), SGD(0.1F));
    trainer.fit(data, {.epochs = 1});
    trainer.compile(small_model().frozen(), SGD(0.1F));
    trainer.fit(data, {.epochs = 1});
  });

  ASSERT_EQ(logged.size(), 2U);
  for (const std::string& line : logged) {
    EXPECT_THAT(line, HasSubstr("fit() changes no weight, since all layers with weights are frozen"));
    EXPECT_THAT(line, HasSubstr("Model::unfrozen()"));
  }
}

TEST(FrozenLayers, MustBeTheSameWhenARunGoesOn) {
  const TemporaryFolder run;
  const auto train = [&](const Model& model) {
    train_on_threads({.run_directory = run.path()}, [&](Replica& replica) {
      Trainer trainer(replica, model, Adam(0.01F), crossentropy());
      trainer.fit(compile_batches(), {.epochs = 1});
    });
  };
  train(small_model().frozen("conv2d"));

  const std::string sentence = sentence_thrown_by([&] { train(frozen_model()); });

  EXPECT_THAT(sentence, HasSubstr("the frozen layers were [\"conv2d\"] and are [\"conv2d\", \"batch_normalization\"]"));
}

TEST(Compile, TrainsTheLayersThatWereFrozen) {
  const TemporaryFolder folder;
  const Model model = frozen_model();
  const Model all = model.unfrozen();
  train_on_threads({.replicas = 2}, [&](Replica& replica) {
    Trainer trainer(replica, model, Adam(0.01F), crossentropy());
    trainer.fit(compile_batches(), {.epochs = 1});
    const std::string trained = trainer.weights_digest().hex();
    trainer.compile(all, SGD(0.01F));
    EXPECT_EQ(trainer.weights_digest().hex(), trained);
    trainer.fit(compile_batches(), {.epochs = 1});
    trainer.save(folder / "after.h5");
  });

  const Model after = load_model(folder / "after.h5");
  EXPECT_TRUE(after.frozen_layers().empty());
  // Both models have what was trained.
  EXPECT_TRUE(std::ranges::equal(all.parameter_values(), after.parameter_values()));
  const Model same = model.unfrozen();
  EXPECT_TRUE(std::ranges::equal(same.parameter_values(), after.parameter_values()));
  EXPECT_TRUE(std::ranges::equal(same.buffer_values(), after.buffer_values()));
}

TEST(Compile, BeginsTheOptimizerAnew) {
  // Adam's first update moves each parameter by about the rate, whatever its gradient; a later one does not.
  std::string compiled, fresh;
  train_on_threads({}, [&](Replica& replica) {
    Trainer trainer(replica, small_model(), SGD(0.0F), crossentropy());
    trainer.fit(compile_batches(), {.epochs = 1});
    trainer.compile(small_model(), Adam(0.01F));
    trainer.fit(compile_batches(), {.epochs = 1});
    compiled = trainer.weights_digest().hex();
  });
  train_on_threads({}, [&](Replica& replica) {
    Trainer trainer(replica, small_model(), SGD(0.0F), crossentropy());
    trainer.fit(compile_batches(), {.epochs = 1});
    trainer.compile(small_model(), SGD(0.5F));
    trainer.compile(small_model(), Adam(0.01F));
    trainer.fit(compile_batches(), {.epochs = 1});
    fresh = trainer.weights_digest().hex();
  });

  EXPECT_EQ(compiled, fresh);
}

TEST(Compile, IsACallOfTheRunThatAFailureRepeats) {
  const TemporaryFolder undisturbed;
  const Outcome expected = train_head_then_all({.replicas = 2, .run_directory = undisturbed.path()});
  const std::int64_t half = expected.step / 2;
  // In the first fit(), in the first and in a later step after the call.
  for (const std::int64_t step : {half - 1, half + 1, half + 4}) {
    for (const int replicas : {1, 3}) {
      SCOPED_TRACE("failure at step " + std::to_string(step) + ", going on with " + std::to_string(replicas));
      const TemporaryFolder run;
      EXPECT_THROW(train_head_then_all({.replicas = 2, .run_directory = run.path()}, step), std::runtime_error);

      expect_equal(train_head_then_all({.replicas = replicas, .run_directory = run.path()}), expected);
    }
  }
}

TEST(Compile, IsRefusedInAResumedRunWithAnotherOptimizer) {
  const TemporaryFolder run;
  train_head_then_all({.run_directory = run.path()});

  const std::string sentence =
      sentence_thrown_by([&] { train_head_then_all({.run_directory = run.path()}, -1, 0.002F); });

  EXPECT_THAT(sentence, HasSubstr("data/optimizer/learning_rate was 0.001 and is 0.002"));
}

TEST(Compile, RefusesAModelOfOtherLayers) {
  train_on_threads({}, [&](Replica& replica) {
    Trainer trainer(replica, small_model(), SGD(), crossentropy());

    const std::string sentence = sentence_thrown_by([&] {
      trainer.compile(Sequential{Input{6, 6, 1}, Flatten{}, Dense{3}}, SGD());
    });

    EXPECT_THAT(sentence, HasSubstr("other layers than the Trainer's"));
  });
}

}  // namespace
}  // namespace holdfast
