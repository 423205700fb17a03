// What fit() and a Trainer refuse before the first step, and with which sentences; and how fit() ends early.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "holdfast/holdfast.h"
#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "unit/train/support/played_callbacks.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// The sentence of an Error{invalid_argument}, or empty.
std::string refusal_by(const std::function<void()>& act) {
  try {
    act();
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
    return error.what();
  }
}

const SparseCategoricalCrossentropy kScores{{.from_logits = true}};

std::string refusal_of_fit(const Dataset& data, const FitOptions& options, std::int64_t* steps = nullptr) {
  Replica replica = Replica::alone();
  Trainer trainer(replica, small_model(), SGD(0.01F), kScores, {SparseCategoricalAccuracy({.name = "accuracy"})});
  const std::string sentence = refusal_by([&] { trainer.fit(data, options); });
  if (steps != nullptr) *steps = trainer.step();
  return sentence;
}

std::string refusal_of_trainer(const Loss& loss, const std::vector<MetricHandle>& metrics = {},
                               const Optimizer& optimizer = SGD(0.01F)) {
  Replica replica = Replica::alone();
  return refusal_by([&] { Trainer(replica, small_model(), optimizer, loss, metrics); });
}

class SpeaksNoJson final : public SparseCategoricalCrossentropy {
 public:
  using SparseCategoricalCrossentropy::SparseCategoricalCrossentropy;
  std::string name() const override { return "my_loss"; }
  std::string configuration() const override { return "{kind: my_loss}"; }
  std::unique_ptr<Loss> clone() const override { return std::make_unique<SpeaksNoJson>(*this); }
};

class SilentMetric final : public SparseCategoricalAccuracy {
 public:
  using SparseCategoricalAccuracy::SparseCategoricalAccuracy;
  std::string configuration() const override { return ""; }
  std::unique_ptr<Metric> clone() const override { return std::make_unique<SilentMetric>(*this); }
};

class KeepsBytes final : public Callback {
 public:
  std::string name() const override { return "keeps_bytes"; }
  CallbackState state() const override { return {{"bytes", std::string("\xff\xfe")}}; }
  void on_epoch_end(TrainingContext& context, const Logs&) override { context.save(path, {}); }

  std::string path;
};

}  // namespace

TEST(Fit, RefusesToValidateOnSamplesThatAShuffleBringsIntoTraining) {
  const Dataset shuffled = small_data(60).shuffle();
  std::int64_t steps = -1;

  const std::string sentence =
      refusal_of_fit(shuffled.skip(20).batch(10), {.validation = shuffled.take(20).batch(10)}, &steps);

  EXPECT_THAT(sentence,
              AllOf(HasSubstr("60 of the 60 samples"), HasSubstr("a shuffle() stands before a take() or skip()"),
                    HasSubstr("data.split(0.2)"), HasSubstr(".accept_shared_samples = true")));
  EXPECT_EQ(steps, 0);
}

TEST(Fit, RefusesToValidateOnSamplesThatOneShuffledSideCanReach) {
  const Dataset data = small_data(60);

  EXPECT_THAT(refusal_of_fit(data.shuffle().skip(20).batch(10), {.validation = data.take(20).batch(10)}),
              HasSubstr("20 of the 20 samples"));
  EXPECT_THAT(refusal_of_fit(data.skip(20).batch(10), {.validation = data.shuffle().take(20).batch(10)}),
              HasSubstr("40 of the 60 samples"));
  EXPECT_THAT(refusal_of_fit(data.batch(10), {.validation = data.take(5).batch(5)}),
              AllOf(HasSubstr("5 of the 5 samples"), Not(HasSubstr("stands before"))));
}

TEST(Fit, ValidatesOnSamplesThatAreKeptApart) {
  const Dataset data = small_data(60);
  const auto [training, validation] = data.split(0.2, {.by_label = true});

  EXPECT_THAT(refusal_of_fit(data.skip(20).shuffle().batch(10), {.validation = data.take(20).batch(10)}), IsEmpty());
  EXPECT_THAT(refusal_of_fit(training.shuffle().repeat(2).batch(10), {.validation = validation.shuffle().batch(7)}),
              IsEmpty());
  EXPECT_THAT(refusal_of_fit(data.batch(10), {.validation = small_data(20).batch(10)}), IsEmpty());
}

TEST(Fit, ValidatesOnTrainingSamplesIfTheOptionsSaySo) {
  const Dataset data = small_data(20);

  EXPECT_THAT(refusal_of_fit(data.shuffle().batch(10), {.validation = data.batch(10), .accept_shared_samples = true}),
              IsEmpty());
}

TEST(Fit, RefusesAMisspeltMonitorBeforeTheFirstStep) {
  const Dataset data = small_data(20).batch(10);
  std::int64_t steps = -1;

  const std::string sentence = refusal_of_fit(
      data, {.validation = small_data(9).batch(9), .callbacks = {EarlyStopping{{.monitor = "val_los"}}}}, &steps);

  EXPECT_THAT(sentence, HasSubstr("\"val_los\", which this fit() does not log; it logs accuracy, loss, val_accuracy, "
                                  "val_loss"));
  EXPECT_EQ(steps, 0);
}

TEST(Fit, RefusesAMisspeltBestByBeforeTheFirstStep) {
  std::int64_t steps = -1;

  const std::string sentence = refusal_of_fit(
      small_data(20).batch(10), {.callbacks = {ModelCheckpoint{{.directory = "none", .best_by = "acuracy"}}}}, &steps);

  EXPECT_THAT(sentence, HasSubstr("\"acuracy\", which this fit() does not log; it logs accuracy, loss"));
  EXPECT_EQ(steps, 0);
}

TEST(Fit, AsksForValidationIfACallbackWatchesIt) {
  const Dataset data = small_data(20).batch(10);

  EXPECT_THAT(refusal_of_fit(data, {.callbacks = {EarlyStopping{}}}),
              AllOf(HasSubstr("\"val_loss\""), HasSubstr("give fit() .validation")));
  EXPECT_THAT(refusal_of_fit(data, {.callbacks = {EarlyStopping{{.monitor = "loss"}}}}), IsEmpty());
}

TEST(Fit, RefusesAMisspeltMonitorOnAFinishedRun) {
  const TemporaryFolder folder;
  const auto run = [&](const std::string& monitor) {
    train_on_threads({.run_directory = folder.path()}, [&](Replica& replica) {
      Trainer trainer(replica, small_model(), SGD(0.01F), kScores);
      trainer.fit(small_data(20).batch(10), {.callbacks = {EarlyStopping{{.monitor = monitor}}, ModelCheckpoint{}}});
    });
  };
  run("loss");

  EXPECT_THAT(refusal_by([&] { run("los"); }), HasSubstr("it logs loss"));
}

TEST(Fit, SaysWhatToWriteForTargetsOfAnotherShape) {
  const Tensor images{Shape{4, 6, 6, 1}};
  const auto refusal_of_targets = [&](const Shape& shape) {
    return refusal_of_fit(from_tensors(images, Tensor(shape)).batch(2), {});
  };

  EXPECT_THAT(refusal_of_targets({4, 1}),
              AllOf(HasSubstr("has targets of shape [1] a sample, the loss takes []"),
                    HasSubstr("pass a tensor of shape [n], not [n, 1]"), HasSubstr("Tensor(Shape{n}, numbers)")));
  EXPECT_THAT(refusal_of_targets({4, 3}), HasSubstr("one-hot rows are for CategoricalCrossentropy"));
}

TEST(Fit, SaysWhatToWriteForLabelsIfRowsAreNeeded) {
  Replica replica = Replica::alone();
  Trainer trainer(replica, small_model(), SGD(0.01F), CategoricalCrossentropy({.from_logits = true}));
  const Dataset data = from_tensors(Tensor{Shape{4, 6, 6, 1}}, Tensor{Shape{4}}).batch(2);

  EXPECT_THAT(refusal_by([&] { trainer.fit(data); }),
              AllOf(HasSubstr("pass a tensor of shape [n, 3], not [n]"), HasSubstr("SparseCategoricalCrossentropy")));
}

TEST(Fit, LeavesSkippedStepsOutOfTheMeansOfTheEpoch) {
  Tensor features{Shape{40, 6, 6, 1}};
  for (float& value : features.values()) value = 0.5F;
  Tensor poisoned = features;
  for (std::int64_t i = 10; i < 20; ++i) poisoned.sample(i)[0] = std::nanf("");
  const Tensor labels{Shape{40}};
  const auto fit = [&](const Dataset& data, std::int64_t* samples) {
    Replica replica = Replica::alone();
    const Sequential model{Input{6, 6, 1}, Flatten{}, Dense{3, {.kernel_initializer = Initializer::zeros()}}};
    Trainer trainer(replica, model, SGD(0.0F), kScores);
    const FitResult result = trainer.fit(data, {.epochs = 2, .when_not_finite = WhenNotFinite::skip_step});
    *samples = trainer.step();
    return result;
  };
  std::int64_t steps = 0;

  const FitResult whole = fit(from_tensors(features, labels).batch(10), &steps);
  const FitResult skipped = fit(from_tensors(poisoned, labels).batch(10), &steps);

  EXPECT_EQ(steps, 8);
  EXPECT_EQ(skipped.history, whole.history);
  EXPECT_FALSE(std::isnan(skipped.results.at("loss")));
}

// Forty samples, in another order in each epoch, of which number 15 has a NaN; and a model that lets it through.
Dataset poisoned_data() {
  Tensor features{Shape{40, 6, 6, 1}};
  features.sample(15)[7] = std::nanf("");
  return from_tensors(std::move(features), Tensor{Shape{40}}).shuffle().batch(10);
}

Sequential linear_model() {
  return Sequential{Input{6, 6, 1}, Flatten{}, Dense{3}};
}

// It named the step and the batch, and which sample it was had to be found by hand.
TEST(Fit, NamesTheSampleWhoseInputIsNotFinite) {
  Replica replica = Replica::alone();
  Trainer trainer(replica, linear_model(), SGD(0.1F), kScores);

  try {
    trainer.fit(poisoned_data(), {.when_not_finite = WhenNotFinite::stop});
    ADD_FAILURE() << "a loss is not finite";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_finite);
    EXPECT_THAT(error.what(),
                HasSubstr("loss is nan; sample 15 of the data set has nan in its input; look at the data"));
  }
}

TEST(Fit, NamesASampleThatIsNotFiniteWhateverRankHasIt) {
  std::mutex mutex;
  std::vector<std::string> logged;
  set_log_sink([&](LogLevel, std::string_view line) {
    const std::lock_guard lock(mutex);
    if (line.find("loss is nan") != std::string_view::npos) logged.emplace_back(line);
  });
  struct Restore {
    ~Restore() { set_log_sink({}); }
  } const restore;

  train_on_threads({.replicas = 4}, [&](Replica& each) {
    Trainer trainer(each, linear_model(), SGD(0.1F), kScores);
    trainer.fit(poisoned_data(), {.epochs = 6, .when_not_finite = WhenNotFinite::skip_step});
  });

  const auto named = std::ranges::count_if(logged, [](const std::string& line) {
    return line.find("; sample 15 of the data set has nan in its input; the step is skipped") != std::string::npos;
  });
  EXPECT_EQ(named, 6) << "once an epoch, by the primary rank, which has the sample in some epochs alone";
  EXPECT_EQ(logged.size(), 6U);
}

TEST(Fit, NamesNoSampleWhereTheWeightsHaveOverflown) {
  Replica replica = Replica::alone();
  Trainer trainer(replica, linear_model(), SGD(1e38F), MeanSquaredError());
  const Dataset data =
      from_tensors(Tensor(Shape{8, 6, 6, 1}, std::vector<float>(288, 1)), Tensor{Shape{8, 3}}).batch(2);

  try {
    trainer.fit(data, {.epochs = 9, .when_not_finite = WhenNotFinite::stop});
    ADD_FAILURE() << "nothing was infinite";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_finite);
    EXPECT_THAT(error.what(), Not(HasSubstr("of the data set has")));
  }
}

TEST(Fit, NamesACallbackWhoseStateIsNotText) {
  const TemporaryFolder folder;
  KeepsBytes callback;
  callback.path = folder / "savepoint-0000000002.h5";

  EXPECT_THAT(
      refusal_of_fit(small_data(20).batch(10), {.callbacks = {callback}}),
      AllOf(HasSubstr("the state of the callback 0/keeps_bytes has bytes that are not UTF-8"), Not(HasSubstr("json"))));
}

// The callback was edited between two starts.
TEST(Fit, NamesACallbackThatCannotRestoreItsState) {
  const TemporaryFolder folder;
  const auto run = [&](const CallbackHandle& callback) {
    train_on_threads({.run_directory = folder.path()}, [&](Replica& replica) {
      Trainer trainer(replica, small_model(), SGD(0.01F), kScores);
      const auto is_saved = [&] { return std::filesystem::exists(folder / "savepoint-0000000002.h5"); };
      trainer.fit(small_data(20).batch(10),
                  {.epochs = 2, .callbacks = {callback, ModelCheckpoint{}, FailAt(3, is_saved)}});
    });
  };
  class Edited final : public Callback {
   public:
    std::string name() const override { return "sum_of_losses"; }
    void restore(const CallbackState& state) override { std::get<double>(state.at("mean")); }
  };
  class Described final : public Callback {
   public:
    std::string name() const override { return "sum_of_losses"; }
    void describe_state(CallbackFields& fields) override { fields.add("mean", mean); }
    double mean = 0;
  };
  EXPECT_THROW(run(SumOfLosses()), std::runtime_error);

  EXPECT_THAT(sentence_thrown_by([&] { run(Described()); }),
              AllOf(HasSubstr("of the callback \"sum_of_losses\" has no \"mean\", which describe_state() names"),
                    HasSubstr("start anew with HOLDFAST_START=fresh")));
  try {
    run(Edited());
    ADD_FAILURE() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::incompatible);
    EXPECT_THAT(error.what(), HasSubstr("the callback \"sum_of_losses\" cannot restore() the state that the run has of "
                                        "it (epochs, sum)"));
  }
}

TEST(Trainer, RefusesTwoMetricsOfOneName) {
  EXPECT_THAT(refusal_of_trainer(kScores, {SparseCategoricalAccuracy({.name = "accuracy"}),
                                           SparseCategoricalAccuracy({.name = "accuracy"})}),
              HasSubstr("two metrics are called \"accuracy\""));
  EXPECT_THAT(refusal_of_trainer(kScores, {SparseCategoricalAccuracy(), SparseCategoricalAccuracy({.name = "again"})}),
              IsEmpty());
}

TEST(Trainer, RefusesAMetricWithANameThatIsTaken) {
  EXPECT_THAT(refusal_of_trainer(kScores, {SparseCategoricalAccuracy({.name = "loss"})}),
              HasSubstr("a metric is called \"loss\", as the loss is"));
  EXPECT_THAT(refusal_of_trainer(kScores, {SparseCategoricalAccuracy({.name = "val_loss"})}),
              HasSubstr("as the validation's loss is"));
}

TEST(Trainer, RefusesACrossentropyThatDoesNotFitTheLastLayer) {
  EXPECT_THAT(refusal_of_trainer(SparseCategoricalCrossentropy{}), HasSubstr("{.from_logits = true}"));
  EXPECT_THAT(refusal_of_trainer(SparseCategoricalCrossentropy{{.accept_any_activation = true}}), IsEmpty());
}

TEST(Trainer, NamesTheClassWhoseConfigurationIsNotJson) {
  EXPECT_THAT(refusal_of_trainer(SpeaksNoJson{CrossentropyOptions{.from_logits = true}}),
              AllOf(HasSubstr("configuration() of the loss \"my_loss\" (class holdfast::"), HasSubstr("SpeaksNoJson)"),
                    HasSubstr("\"{kind: my_loss}\", which is wrong at character 2"), Not(HasSubstr("json.exception"))));
  EXPECT_THAT(refusal_of_trainer(kScores, {SilentMetric({.name = "mine"})}),
              AllOf(HasSubstr("the metric \"mine\""), HasSubstr("returns an empty text")));
}

TEST(Trainer, SaysHowOneSampleIsPredicted) {
  Replica replica = Replica::alone();
  Trainer trainer(replica, small_model(), SGD(0.01F), kScores);

  EXPECT_THAT(refusal_by([&] {
                trainer.predict(Tensor{Shape{6, 6, 1}});
              }),
              HasSubstr("predict() takes a batch of samples, [n, 6, 6, 1], not [6, 6, 1]; that is one sample, so pass "
                        "it as a batch of one: Shape{1, 6, 6, 1}"));
  EXPECT_THAT(refusal_by([&] { trainer.predict(Tensor{Shape{2, 5}}); }), Not(HasSubstr("one sample")));
  EXPECT_THAT(refusal_by([&] { trainer.predict(Tensor{Shape{1, 6, 6, 1}}, 0); }), HasSubstr("batch size"));
}

namespace {

// Asks for the end of fit() when an epoch begins.
class StopAtTheBeginningOf final : public Callback {
 public:
  explicit StopAtTheBeginningOf(std::int64_t epoch) : epoch_(epoch) {}
  std::string name() const override { return "stop_at_the_beginning"; }
  void on_epoch_begin(TrainingContext& context) override {
    if (context.epoch() == epoch_) context.stop_training();
  }

 private:
  std::int64_t epoch_;
};

// Asks for the end of a fit() that has ended.
class StopAtTheEnd final : public Callback {
 public:
  std::string name() const override { return "stop_at_the_end"; }
  void on_fit_end(TrainingContext& context, const Logs&) override { context.stop_training(); }
};

// Ends the generation once, before the sums of a step.
class EndingOnce final : public NoSupervision {
 public:
  explicit EndingOnce(std::int64_t step) : step_(step) {}
  void reach(FaultPoint point, std::int64_t step) override {
    if (point == FaultPoint::reduce && step == step_ && !std::exchange(has_ended_, true)) {
      throw GenerationEnded("a replica was lost");
    }
  }

 private:
  const std::int64_t step_;
  bool has_ended_ = false;
};

std::int64_t steps_with_a_stop_in_epoch_1(std::shared_ptr<Supervision> supervision) {
  const TemporaryFolder folder;
  return outcomes_of({.run_directory = folder.path(), .supervision = std::move(supervision)},
                     [](Replica& replica) { return train_small(replica, {StopAtTheBeginningOf(1)}, 3); })[0]
      .step;
}

}  // namespace

TEST(Fit, ComputesOneStepAfterAStopAtTheBeginningOfAnEpoch) {
  const std::int64_t steps_per_epoch = small_data().batch(10).batches();

  EXPECT_EQ(steps_with_a_stop_in_epoch_1(std::make_shared<NoSupervision>()), steps_per_epoch + 1);
}

TEST(Fit, ComputesThatStepAlsoIfAReplicaIsLostInIt) {
  const std::int64_t steps_per_epoch = small_data().batch(10).batches();

  EXPECT_EQ(steps_with_a_stop_in_epoch_1(std::make_shared<EndingOnce>(steps_per_epoch)), steps_per_epoch + 1);
}

TEST(Fit, TrainsInAFurtherCallAfterAStopAtTheEndOfTheFirst) {
  train_on_threads({}, [](Replica& replica) {
    Trainer trainer(replica, small_model(), SGD(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
    trainer.fit(small_data().batch(10), {.callbacks = {StopAtTheEnd()}});
    const std::int64_t steps = trainer.step();

    trainer.fit(small_data().batch(10), {.epochs = 2});

    EXPECT_EQ(trainer.step(), 3 * steps);
  });
}

// As a notebook would go on after a mistake in a callback.
TEST(Fit, MayFailInAProgramThatIsAloneAndGoesOn) {
  Replica replica = Replica::alone();
  Trainer trainer(replica, small_model(), SGD(0.01F), kScores);
  const auto sums = std::make_shared<SumOfLosses>();
  EXPECT_THROW(trainer.fit(small_data().batch(10), {.epochs = 2, .callbacks = {sums, FailAt(8)}}), std::runtime_error);

  const Logs evaluation = trainer.evaluate(small_data().batch(10));
  const FitResult fit = trainer.fit(small_data().batch(10), {.epochs = 3, .callbacks = {sums}});

  EXPECT_TRUE(evaluation.contains("loss"));
  EXPECT_EQ(fit.history.size(), 3U);
  EXPECT_EQ(trainer.step(), 8 + 18);
}

TEST(Fit, SaysThatACallFailedWhereAProgramGoesOnInARunDirectory) {
  const TemporaryFolder folder;
  train_on_threads({.run_directory = folder.path()}, [](Replica& replica) {
    Trainer trainer(replica, small_model(), SGD(0.01F), kScores);
    EXPECT_THROW(trainer.fit(small_data().batch(10), {.callbacks = {FailAt(3)}}), std::runtime_error);

    for (int attempt = 0; attempt < 2; ++attempt) {
      EXPECT_THAT(refusal_by([&] { trainer.evaluate(small_data().batch(10)); }),
                  AllOf(HasSubstr("call 1 ended with an error that the program caught: failed as asked."),
                        HasSubstr("Let the error leave the training function")));
    }
  });
}

}  // namespace holdfast
