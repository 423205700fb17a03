// Callbacks that watch a validation, evaluate() and predict(): when they are called, with what, and when again.

#include "train/fit/watching/watchers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "holdfast/base/deadline.h"
#include "holdfast/base/error.h"
#include "holdfast/holdfast.h"
#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "support/thrown.h"
#include "train/state/resume.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;

const SparseCategoricalCrossentropy kWatchedLoss{{.from_logits = true}};

// Writes its calls down, and counts those of batches in the state that savepoints hold.
class Watching final : public Callback {
 public:
  std::string name() const override { return "watching"; }
  CallbackState state() const override { return {{"batches", batches}}; }
  void restore(const CallbackState& state) override { batches = std::get<std::int64_t>(state.at("batches")); }

  void on_epoch_end(TrainingContext&, const Logs& logs) override {
    calls.emplace_back("epoch");
    of_epochs.push_back(logs);
  }
  void on_test_begin(const TrainingContext& context) override {
    calls.emplace_back("begin");
    look(context);
  }
  void on_test_batch_begin(const TrainingContext&, std::int64_t batch) override {
    ++batches;
    note("<", batch);
  }
  void on_test_batch_end(const TrainingContext&, std::int64_t batch, const Logs& logs) override {
    last_of_batches = logs;
    note(">", batch);
  }
  void on_test_end(const TrainingContext&, const Logs& logs) override {
    calls.emplace_back("end");
    of_tests.push_back(logs);
  }
  void on_predict_begin(const TrainingContext& context) override {
    calls.emplace_back("begin");
    look(context);
  }
  void on_predict_batch_begin(const TrainingContext&, std::int64_t batch) override { note("<", batch); }
  void on_predict_batch_end(const TrainingContext&, std::int64_t batch) override { note(">", batch); }
  void on_predict_end(const TrainingContext&) override { calls.emplace_back("end"); }

  std::int64_t batches = 0;
  std::vector<std::string> calls;
  std::vector<Logs> of_epochs;
  std::vector<Logs> of_tests;
  Logs last_of_batches;
  std::function<void(const TrainingContext&)> look = [](const TrainingContext&) {};
  std::function<void(const std::string& call)> in_batch = [](const std::string&) {};

 private:
  void note(const char* what, std::int64_t batch) { in_batch(calls.emplace_back(what + std::to_string(batch))); }
};

// Ends the generation once, before a batch of an evaluation or a prediction is computed.
class EndingInBatch final : public NoSupervision {
 public:
  explicit EndingInBatch(std::int64_t batch) : batch_(batch) {}
  void enter(TrainingPhase phase, std::int64_t) override {
    if (phase == TrainingPhase::evaluating && entered_++ == batch_) throw GenerationEnded("a replica was lost");
  }

 private:
  const std::int64_t batch_;
  std::int64_t entered_ = 0;
};

// Asks for the end of the run while a batch is evaluated.
class StoppingInBatch final : public NoSupervision {
 public:
  explicit StoppingInBatch(std::int64_t batch) : batch_(batch) {}
  void enter(TrainingPhase phase, std::int64_t) override {
    if (phase == TrainingPhase::evaluating) ++entered_;
  }
  StepRequests requests() const override { return {.stop = entered_ > batch_}; }

 private:
  const std::int64_t batch_;
  std::atomic<std::int64_t> entered_ = 0;
};

// The other rank must not use the memory of the next generation while this one is still in the last.
void wait_for(const std::function<bool()>& is_so) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  while (!is_so() && !deadline.has_passed()) std::this_thread::yield();
}

// 20 samples in batches of 7.
Dataset three_batches() {
  return small_data(20).batch(7);
}

// Two epochs with a validation each. The digest is of the weights.
Outcome validated(Replica& replica, const std::shared_ptr<Watching>& watching) {
  Trainer trainer(replica, small_model(), Adam(0.01F), kWatchedLoss);
  std::vector<CallbackHandle> callbacks;
  if (watching) callbacks.emplace_back(watching);
  const FitResult fit = trainer.fit(small_data().shuffle().batch(10),
                                    {.epochs = 2, .validation = three_batches(), .callbacks = std::move(callbacks)});
  return {trainer.weights_digest().hex(), trainer.step(), fit.results, {}, fit.history};
}

Trainer untrained(Replica& replica) {
  return Trainer(replica, small_model(), SGD(0.01F), kWatchedLoss);
}

const std::vector<std::string> kValidation = {"begin", "<0", ">0", "<1", ">1", "<2", ">2", "end", "epoch"};
const std::vector<std::string> kThreeBatches = {"begin", "<0", ">0", "<1", ">1", "<2", ">2", "end"};
const std::vector<std::string> kCutOffInBatch1 = {"begin", "<0", ">0", "<1", "begin", "<0",
                                                  ">0",    "<1", ">1", "<2", ">2",    "end"};

}  // namespace

TEST(Watchers, SeeEachValidationOnEveryRankWithItsResults) {
  for (const int replicas : {1, 2, 3}) {
    SCOPED_TRACE(replicas);
    train_on_threads({.replicas = replicas}, [&](Replica& replica) {
      const auto watching = std::make_shared<Watching>();

      validated(replica, watching);

      std::vector<std::string> twice = kValidation;
      twice.insert(twice.end(), kValidation.begin(), kValidation.end());
      EXPECT_THAT(watching->calls, ElementsAreArray(twice));
      ASSERT_EQ(watching->of_tests.size(), 2U);
      for (std::size_t epoch = 0; epoch < 2; ++epoch) {
        EXPECT_EQ(watching->of_tests[epoch], Logs({{"loss", watching->of_epochs[epoch].at("val_loss")}}));
      }
      EXPECT_EQ(watching->last_of_batches, watching->of_tests[1]);
    });
  }
}

TEST(Watchers, ChangeNoBitOfTraining) {
  const Outcome expected = outcomes_of({}, [](Replica& replica) { return validated(replica, nullptr); })[0];

  const Outcome watched = outcomes_of(
      {.replicas = 2}, [](Replica& replica) { return validated(replica, std::make_shared<Watching>()); })[1];

  expect_equal(watched, expected);
}

TEST(Watchers, SeeNothingInEpochsWithoutValidation) {
  Replica replica = Replica::alone();
  Trainer trainer = untrained(replica);
  const auto watching = std::make_shared<Watching>();

  trainer.fit(small_data().batch(10),
              {.epochs = 2, .validation = three_batches(), .validation_every = 2, .callbacks = {watching}});

  std::vector<std::string> expected = {"epoch"};
  expected.insert(expected.end(), kValidation.begin(), kValidation.end());
  EXPECT_THAT(watching->calls, ElementsAreArray(expected));
}

TEST(Watchers, SeeEvaluateOnEveryRankWithWhatItReturns) {
  for (const int replicas : {1, 2}) {
    SCOPED_TRACE(replicas);
    train_on_threads({.replicas = replicas}, [](Replica& replica) {
      Trainer trainer = untrained(replica);
      const auto watching = std::make_shared<Watching>();

      const Logs results = trainer.evaluate(three_batches(), {.callbacks = {watching}});

      EXPECT_EQ(results, trainer.evaluate(three_batches()));
      EXPECT_THAT(watching->calls, ElementsAreArray(kThreeBatches));
      EXPECT_THAT(watching->of_tests, ElementsAre(results));
      EXPECT_EQ(watching->last_of_batches, results);
    });
  }
}

TEST(Watchers, SeePredictOnEveryRankAfterTheSink) {
  for (const int replicas : {1, 2}) {
    SCOPED_TRACE(replicas);
    train_on_threads({.replicas = replicas}, [](Replica& replica) {
      Trainer trainer = untrained(replica);
      const auto watching = std::make_shared<Watching>();
      const auto given = std::make_shared<Watching>();
      const auto sink = [&](std::int64_t first_sample, const std::vector<Tensor>&) {
        given->calls.push_back("sink" + std::to_string(first_sample));
      };

      const Tensor outputs = trainer.predict(three_batches(), {.callbacks = {watching}});
      trainer.predict(three_batches(), sink, {.callbacks = {given}});

      EXPECT_EQ(outputs.shape(), (Shape{20, 3}));
      EXPECT_THAT(watching->calls, ElementsAreArray(kThreeBatches));
      EXPECT_THAT(given->calls,
                  ElementsAre("begin", "<0", "sink0", ">0", "<1", "sink7", ">1", "<2", "sink14", ">2", "end"));
    });
  }
}

TEST(Watchers, SeeWhereTheRunIs) {
  train_on_threads({.replicas = 2}, [](Replica& replica) {
    Trainer trainer = untrained(replica);
    const auto watching = std::make_shared<Watching>();
    int looks = 0;
    trainer.fit(small_data().batch(10), {.epochs = 2});
    watching->look = [&](const TrainingContext& context) {
      ++looks;
      EXPECT_EQ(context.rank(), replica.rank());
      EXPECT_EQ(context.replicas(), 2);
      EXPECT_EQ(context.call(), looks);
      EXPECT_EQ(context.step(), 12);
      EXPECT_EQ(context.epoch(), 0);
      EXPECT_EQ(context.epochs(), 1);
      EXPECT_EQ(context.batch_in_epoch(), 0);
      EXPECT_EQ(context.batches_per_epoch(), 3);
      EXPECT_FALSE(context.is_validated());
      EXPECT_THAT(context.history(), IsEmpty());
      EXPECT_EQ(context.earlier_histories().size(), 1U);
      EXPECT_EQ(context.weights().front().name, "model/conv2d/kernel");
    };

    trainer.evaluate(three_batches(), {.callbacks = {watching}});
    trainer.predict(three_batches(), {.callbacks = {watching}});

    EXPECT_EQ(looks, 2);
  });
}

TEST(Watchers, SeeAnEvaluationAndAPredictionFromTheBeginningAfterAFailure) {
  const TemporaryFolder of_evaluate;
  const TemporaryFolder of_predict;
  const auto evaluating = std::make_shared<Watching>();
  const auto predicting = std::make_shared<Watching>();
  Logs results;

  train_on_threads(
      {.run_directory = of_evaluate.path(), .supervision = std::make_shared<EndingInBatch>(1)},
      [&](Replica& replica) { results = untrained(replica).evaluate(three_batches(), {.callbacks = {evaluating}}); });
  train_on_threads({.run_directory = of_predict.path(), .supervision = std::make_shared<EndingInBatch>(1)},
                   [&](Replica& replica) { untrained(replica).predict(three_batches(), {.callbacks = {predicting}}); });

  EXPECT_THAT(evaluating->calls, ElementsAreArray(kCutOffInBatch1));
  EXPECT_THAT(evaluating->of_tests, ElementsAre(results));
  EXPECT_THAT(predicting->calls, ElementsAreArray(kCutOffInBatch1));
}

// The survivors are cut off at different calls, so one has counted a batch more than the other.
TEST(Watchers, CountEachBatchOfAValidationOnceAlsoIfAFailureInterruptsIt) {
  const Outcome expected = outcomes_of({}, [](Replica& replica) { return validated(replica, nullptr); })[0];
  const TemporaryFolder folder;
  const std::vector<std::shared_ptr<Watching>> watching = {std::make_shared<Watching>(), std::make_shared<Watching>()};
  std::atomic<int> cut_off = 0;

  const auto outcomes = outcomes_of({.replicas = 2, .run_directory = folder.path()}, [&](Replica& replica) {
    const std::shared_ptr<Watching>& own = watching[static_cast<std::size_t>(replica.rank())];
    const std::string last_call = replica.rank() == 0 ? ">1" : "<2";
    own->in_batch = [&cut_off, last_call, has_failed = false](const std::string& call) mutable {
      if (call != last_call || std::exchange(has_failed, true)) return;
      ++cut_off;
      wait_for([&] { return cut_off == 2; });
      throw GenerationEnded("a replica was lost");
    };
    return validated(replica, own);
  });

  EXPECT_EQ(watching[0]->calls.size(), 18U + 5);
  EXPECT_EQ(watching[1]->calls.size(), 18U + 6);
  for (const auto& each : watching) EXPECT_EQ(each->batches, 6);
  for (const Outcome& outcome : outcomes) expect_equal(outcome, expected);
}

TEST(Watchers, CountEachBatchOfAValidationOnceAlsoIfTheRunIsStoppedInIt) {
  const TemporaryFolder folder;
  const auto stopped = std::make_shared<Watching>();
  EXPECT_THROW(train_on_threads({.run_directory = folder.path(), .supervision = std::make_shared<StoppingInBatch>(1)},
                                [&](Replica& replica) { validated(replica, stopped); }),
               StopRequested);
  ASSERT_THAT(savepoint_files(folder.path()), ElementsAre(savepoint_name(6)));
  const auto again = std::make_shared<Watching>();

  train_on_threads({.run_directory = folder.path()}, [&](Replica& replica) { validated(replica, again); });

  EXPECT_THAT(stopped->calls, ElementsAre("begin", "<0", ">0", "<1", ">1"));
  EXPECT_EQ(again->batches, 6);
}

TEST(Watchers, SeeNothingOfACallThatHadFinished) {
  const TemporaryFolder folder;
  const auto run = [&](const std::shared_ptr<Watching>& watching) {
    train_on_threads({.run_directory = folder.path()}, [&](Replica& replica) {
      Trainer trainer(replica, small_model(), SGD(0.01F), kWatchedLoss);
      trainer.evaluate(three_batches(), {.callbacks = {watching}});
      trainer.fit(small_data().batch(10), {.validation = three_batches(), .callbacks = {watching}});
    });
  };
  run(std::make_shared<Watching>());
  const auto again = std::make_shared<Watching>();

  run(again);

  EXPECT_THAT(again->calls, IsEmpty());
}

// The state of another call says that predict() had finished, and the outputs went with the process.
TEST(Watchers, SeeNothingWherePredictComputesAgainWhatItHadReturned) {
  const TemporaryFolder folder;
  const auto run = [&](const std::shared_ptr<Watching>& watching) {
    std::int64_t samples = 0;
    train_on_threads({.run_directory = folder.path()}, [&](Replica& replica) {
      Trainer trainer = untrained(replica);
      samples = trainer.predict(three_batches(), {.callbacks = {watching}}).shape()[0];
      trainer.save(folder / savepoint_name(0));
    });
    return samples;
  };
  run(std::make_shared<Watching>());
  const auto again = std::make_shared<Watching>();

  EXPECT_EQ(run(again), 20);

  EXPECT_THAT(again->calls, IsEmpty());
}

TEST(Watchers, EndTheCallByAnException) {
  Replica replica = Replica::alone();
  Trainer trainer = untrained(replica);
  const auto failing = std::make_shared<Watching>();
  failing->in_batch = [](const std::string& call) {
    if (call == ">1") throw std::runtime_error("failed as asked");
  };

  EXPECT_THROW(trainer.evaluate(three_batches(), {.callbacks = {failing}}), std::runtime_error);
  EXPECT_THROW(trainer.predict(three_batches(), {.callbacks = {failing}}), std::runtime_error);
  EXPECT_THROW(trainer.fit(small_data().batch(10), {.validation = three_batches(), .callbacks = {failing}}),
               std::runtime_error);

  // A program that is alone may go on.
  failing->in_batch = [](const std::string&) {};
  failing->calls.clear();
  trainer.evaluate(three_batches(), {.callbacks = {failing}});
  EXPECT_THAT(failing->calls, ElementsAreArray(kThreeBatches));
}

TEST(Watchers, EndTheRunOfAllReplicasByAnException) {
  EXPECT_THROW(train_on_threads({.replicas = 2},
                                [](Replica& replica) {
                                  const auto watching = std::make_shared<Watching>();
                                  if (replica.rank() == 1) {
                                    watching->in_batch = [](const std::string&) {
                                      throw std::runtime_error("failed as asked");
                                    };
                                  }
                                  untrained(replica).evaluate(three_batches(), {.callbacks = {watching}});
                                }),
               std::runtime_error);
}

TEST(Watchers, AreTheSameOnAllRanks) {
  const std::string sentence = sentence_thrown_by([] {
    train_on_threads({.replicas = 2}, [](Replica& replica) {
      std::vector<CallbackHandle> callbacks;
      if (replica.rank() == 0) callbacks.emplace_back(std::make_shared<Watching>());
      untrained(replica).evaluate(three_batches(), {.callbacks = callbacks});
    });
  });

  EXPECT_THAT(sentence, HasSubstr("options/callbacks/0 is not set there and \"watching\" on replica 0"));
}

TEST(Watchers, ReadTheWeightsThatTheOptionsName) {
  Replica replica = Replica::alone();
  Trainer trainer(replica, small_model(), Adam({.use_ema = true}), kWatchedLoss);
  trainer.fit(small_data().batch(10));
  const auto watching = std::make_shared<Watching>();

  const Logs averaged = trainer.evaluate(three_batches(), {.callbacks = {watching}, .weights = Weights::averaged});

  EXPECT_EQ(averaged, trainer.evaluate(three_batches(), Weights::averaged));
  EXPECT_NE(averaged, trainer.evaluate(three_batches()));
}

}  // namespace holdfast
