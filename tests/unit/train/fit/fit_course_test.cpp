// Loops over Trainer::steps(). They are the same calls as fit(), so outcomes are compared with its outcomes, exactly.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

#include "holdfast/base/error.h"
#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "support/thrown.h"
#include "unit/train/support/played_callbacks.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

FitOptions looped_options() {
  return {.epochs = 3, .validation = small_data(20).batch(7), .steps_per_epoch = 4};
}

using LoopBody = std::function<void(const TrainingStep&)>;

Outcome looped(
    Replica& replica, const FitOptions& options, const LoopBody& body = [](const TrainingStep&) {}) {
  Trainer trainer(replica, small_model(), Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
  StepLoop loop = trainer.steps(small_data().shuffle().batch(10), options);
  for (const TrainingStep& at : loop) body(at);
  return {trainer.weights_digest().hex(), trainer.step(), loop.result().results, {}, loop.result().history};
}

Outcome fitted(Replica& replica, const FitOptions& options) {
  Trainer trainer(replica, small_model(), Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
  const FitResult fit = trainer.fit(small_data().shuffle().batch(10), options);
  return {trainer.weights_digest().hex(), trainer.step(), fit.results, {}, fit.history};
}

Outcome fitted_alone(const FitOptions& options) {
  return outcomes_of({}, [&](Replica& replica) { return fitted(replica, options); })[0];
}

TEST(StepLoop, IsFitOnAnyNumberOfReplicas) {
  const Outcome expected = fitted_alone(looped_options());

  for (const int replicas : {1, 2, 3}) {
    for (const Outcome& outcome :
         outcomes_of({.replicas = replicas}, [](Replica& replica) { return looped(replica, looped_options()); })) {
      expect_equal(outcome, expected);
    }
  }
}

TEST(StepLoop, RunsItsBodyAfterEachStep) {
  std::vector<std::int64_t> steps;
  std::vector<double> losses;
  FitOptions options{.epochs = 2, .steps_per_epoch = 3};
  std::vector<double> losses_of_callback;
  LambdaCallbackOptions calls{.name = "losses"};
  calls.on_step_end = [&](TrainingContext&, const Logs& logs) { losses_of_callback.push_back(logs.at("loss")); };
  options.callbacks = {LambdaCallback(calls)};
  Replica replica = Replica::alone();

  looped(replica, options, [&](const TrainingStep& at) {
    steps.push_back(at.context.step());
    losses.push_back(at.logs.at("loss"));
  });

  EXPECT_THAT(steps, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(losses, losses_of_callback);
}

TEST(StepLoop, GoesOnFromItsSavepointsWithTheSameBits) {
  const Outcome expected = fitted_alone(looped_options());
  for (const std::int64_t step : {1, 4, 7, 11}) {
    SCOPED_TRACE(step);
    const TemporaryFolder folder;
    // Each rank of each start has callbacks of its own, as processes do.
    const auto saving = [] {
      FitOptions options = looped_options();
      options.callbacks = {ModelCheckpoint({.every_steps = 1})};
      return options;
    };
    const auto fail = [&](const TrainingStep& at) {
      if (at.context.step() == step) throw std::runtime_error("failed as asked");
    };
    EXPECT_THROW(outcomes_of({.replicas = 2, .run_directory = folder.path()},
                             [&](Replica& replica) { return looped(replica, saving(), fail); }),
                 std::runtime_error);
    std::vector<std::int64_t> steps;

    const Outcome outcome = outcomes_of({.run_directory = folder.path()}, [&](Replica& replica) {
      return looped(replica, saving(), [&](const TrainingStep& at) { steps.push_back(at.context.step()); });
    })[0];

    expect_equal(outcome, expected);
    // Which savepoints are durable by the failure is chance. None has the step whose body failed.
    EXPECT_LE(steps.front(), step);
    EXPECT_EQ(static_cast<std::int64_t>(steps.size()), 12 - steps.front() + 1);
    EXPECT_EQ(steps.back(), 12);
  }
}

// The form of the call is not part of the record.
TEST(StepLoop, ReturnsAtOnceWhereTheRunHasFinishedIt) {
  const TemporaryFolder folder;
  const Outcome first = outcomes_of({.run_directory = folder.path()},
                                    [](Replica& replica) { return fitted(replica, looped_options()); })[0];
  int bodies = 0;

  const Outcome again = outcomes_of({.run_directory = folder.path()}, [&](Replica& replica) {
    return looped(replica, looped_options(), [&](const TrainingStep&) { ++bodies; });
  })[0];

  expect_equal(again, first);
  EXPECT_EQ(bodies, 0);
}

TEST(StepLoop, EndsWhereItsBodyAsksForIt) {
  const auto stop = [](const TrainingStep& at) {
    if (at.context.step() == 6) at.context.stop_training();
  };

  const Outcome outcome =
      outcomes_of({.replicas = 2}, [&](Replica& replica) { return looped(replica, looped_options(), stop); })[1];

  EXPECT_EQ(outcome.step, 6);
  EXPECT_EQ(outcome.history.size(), 1U);
  EXPECT_TRUE(outcome.results.contains("loss"));
}

TEST(StepLoop, MayBeLeftInAProgramThatIsAlone) {
  Replica replica = Replica::alone();
  Trainer trainer(replica, small_model(), Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
  for (const TrainingStep& at : trainer.steps(small_data().batch(10))) {
    if (at.context.step() == 2) break;
  }

  EXPECT_TRUE(trainer.evaluate(small_data().batch(10)).contains("loss"));
  EXPECT_EQ(trainer.step(), 2);
}

TEST(StepLoop, SaysThatItWasLeftInARunDirectory) {
  const TemporaryFolder folder;
  train_on_threads({.run_directory = folder.path()}, [](Replica& replica) {
    Trainer trainer(replica, small_model(), Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
    for (const TrainingStep& at : trainer.steps(small_data().batch(10))) {
      if (at.context.step() == 2) break;
    }

    EXPECT_THAT(sentence_thrown_by([&] { trainer.evaluate(small_data().batch(10)); }),
                HasSubstr("the loop over its steps was left before its end, which stop_training() would bring"));
  });
}

TEST(StepLoop, RefusesCallsOfTheRunWithinIt) {
  Replica replica = Replica::alone();
  Trainer trainer(replica, small_model(), Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
  int refusals = 0;
  for (const TrainingStep& at : trainer.steps(small_data().batch(10))) {
    if (at.context.step() != 2) continue;
    EXPECT_THAT(sentence_thrown_by([&] { trainer.evaluate(small_data().batch(10)); }),
                HasSubstr("evaluate() was called while fit() is under way"));
    ++refusals;
  }

  EXPECT_EQ(refusals, 1);
  EXPECT_EQ(trainer.step(), 6);
}

}  // namespace
}  // namespace holdfast
