#include "train/fit/fit_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "holdfast/base/log.h"
#include "holdfast/holdfast.h"
#include "support/thrown.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

Dataset rows_of_four(std::int64_t samples) {
  Tensor features(Shape{samples, 4});
  for (std::int64_t i = 0; i < samples; ++i) features.sample(i)[0] = static_cast<float>(i);
  return from_tensors(std::move(features), Tensor(Shape{samples, 1}));
}

Model normalized_vectors() {
  return Sequential{Input{4}, Dense{3}, BatchNormalization{}, Dense{1}};
}

// Fits `model` in batches of so many of 16 samples, cut into four shards. Returns what was logged.
std::string fit_in_four_shards(const Model& model, std::int64_t batch) {
  std::string logged;
  set_log_sink([&](LogLevel, std::string_view line) { logged += line; });
  struct Restore {
    ~Restore() { set_log_sink({}); }
  } const restore;
  Replica alone = Replica::alone({.shards = 4});
  Trainer trainer(alone, model, SGD(0.1F), MeanSquaredError());
  trainer.fit(rows_of_four(16).batch(batch));
  return logged;
}

// It trained without a word, and gave the same output for any input.
TEST(FitChecks, RefuseBatchNormalizationOfOneSampleAShard) {
  const std::string sentence = sentence_thrown_by([] { fit_in_four_shards(normalized_vectors(), 4); });

  EXPECT_THAT(sentence, HasSubstr("cuts batches of 4 samples into 4 shards of at most one sample"));
  EXPECT_THAT(sentence, HasSubstr("BatchNormalization \"batch_normalization\""));
  EXPECT_THAT(sentence, HasSubstr("use batches of at least 8 samples"));
}

TEST(FitChecks, WarnOfBatchNormalizationWhereSomeShardsHaveOneSample) {
  EXPECT_THAT(fit_in_four_shards(normalized_vectors(), 7), HasSubstr("some of one sample"));
  EXPECT_EQ(fit_in_four_shards(normalized_vectors(), 8), "");
}

// Frozen layers take the averages, and the positions of one sample are rows that differ.
TEST(FitChecks, LetBatchNormalizationsBeThatNeedNoSecondSample) {
  EXPECT_EQ(fit_in_four_shards(normalized_vectors().frozen("batch_normalization"), 4), "");
  const Model of_positions = Sequential{Input{4}, Reshape{{2, 2}}, BatchNormalization{}, Flatten{}, Dense{1}};
  EXPECT_EQ(fit_in_four_shards(of_positions, 4), "");
}

FitResult fit_with(const std::vector<MetricHandle>& metrics, const std::vector<CallbackHandle>& callbacks) {
  Replica alone = Replica::alone();
  Trainer trainer(alone, Sequential{Input{4}, Dense{1}}, SGD(0.0F), MeanSquaredError(), metrics);
  return trainer.fit(rows_of_four(8).batch(4), {.epochs = 4, .callbacks = callbacks});
}

// A number that rises with the values of the outputs' error, under any name.
MetricFunction some_metric(const std::string& name) {
  return {name, [](const Value& outputs, const Value& targets) { return outputs - targets; }};
}

TEST(FitChecks, AskForTheDirectionOfAMetricThatNothingIsKnownOf) {
  const EarlyStopping stopping({.monitor = "mood"});
  const ReduceLROnPlateau plateau({.monitor = "mood"});
  for (const CallbackHandle& callback : std::vector<CallbackHandle>{stopping, plateau}) {
    const std::string sentence = sentence_thrown_by([&] { fit_with({some_metric("mood")}, {callback}); });

    EXPECT_THAT(sentence, HasSubstr("compares values of \"mood\""));
    EXPECT_THAT(sentence, HasSubstr("say .best = Best::lowest or .best = Best::highest"));
  }
  EXPECT_EQ(fit_with({some_metric("mood")}, {EarlyStopping({.monitor = "mood", .best = Best::highest})}).history.size(),
            2U);
}

// It was taken, and watched all epochs without ever acting.
TEST(FitChecks, RefuseACallbackThatWatchesAValidationWhichNeverComes) {
  Replica alone = Replica::alone();
  Trainer trainer(alone, Sequential{Input{4}, Dense{1}}, SGD(0.0F), MeanSquaredError());
  const auto fit = [&](std::int64_t epochs, const CallbackHandle& callback) {
    trainer.fit(rows_of_four(8).batch(4), {.epochs = epochs,
                                           .validation = rows_of_four(4).batch(4),
                                           .validation_every = 3,
                                           .accept_shared_samples = true,
                                           .callbacks = {callback}});
  };

  const std::string sentence = sentence_thrown_by([&] { fit(2, EarlyStopping{}); });
  EXPECT_THAT(sentence, HasSubstr("watches val_loss, and no epoch is validated"));
  EXPECT_THAT(sentence, HasSubstr("validation_every is 3"));
  fit(2, EarlyStopping{{.monitor = "loss"}});
  fit(3, EarlyStopping{});
}

// The metric says what it is, whatever it is called.
TEST(FitChecks, TakeTheDirectionOfTheMetricBeforeThatOfItsName) {
  class Watch final : public Callback {
   public:
    explicit Watch(std::vector<std::optional<Best>>& found) : found_(found) {}
    std::string name() const override { return "watch"; }
    void on_fit_begin(TrainingContext& context) override {
      for (const char* log : {"accuracy", "val_accuracy", "hits", "loss", "precision", "mood"}) {
        found_.push_back(context.best_of(log));
      }
    }

   private:
    std::vector<std::optional<Best>>& found_;
  };
  std::vector<std::optional<Best>> found;

  fit_with({MeanAbsoluteError({.name = "accuracy"}), BinaryAccuracy({.name = "hits"}), some_metric("precision"),
            some_metric("mood")},
           {Watch(found)});

  EXPECT_EQ(found, (std::vector<std::optional<Best>>{Best::lowest, Best::lowest, Best::highest, Best::lowest,
                                                     Best::highest, std::nullopt}));
}

}  // namespace
}  // namespace holdfast
