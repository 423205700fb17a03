// What a user chooses for the data of a training: padded batches, and samples that are left out. Bits are compared
// exactly where only the number of replicas differs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "support/thread_replica.h"
#include "train/state/run_results.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

// Without dropout and batch statistics, which see the copies of a padded batch.
Sequential plain_model() {
  return Sequential{Input{6, 6, 1}, Flatten{}, Dense{8, {.activation = Activation::relu}}, Dense{3}};
}

Outcome outcome_with(const ThreadRun& run, const Sequential& model, const BatchOptions& batch) {
  return outcomes_of(run, [&](Replica& replica) {
    Trainer trainer(replica, model, Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true}),
                    {SparseCategoricalAccuracy({.name = "accuracy"})});
    const FitResult fit =
        trainer.fit(small_data().shuffle().batch(10, batch),
                    {.epochs = 2, .validation = small_data(20).batch(7, batch), .accept_shared_samples = true});
    return Outcome{trainer.weights_digest().hex(), trainer.step(), fit.results,
                   trainer.evaluate(small_data(20).batch(7, batch)), fit.history};
  })[0];
}

void expect_near(const Logs& left, const Logs& right) {
  ASSERT_EQ(left.size(), right.size());
  for (const auto& [name, value] : left) EXPECT_NEAR(value, right.at(name), 1e-4) << name;
}

// Reports of the primary alone, since one rank trains.
class KeptEvents final : public NoSupervision {
 public:
  void report_event(const std::string& event, const std::string& detail) override {
    events[event].push_back(nlohmann::json::parse(detail));
  }

  std::map<std::string, std::vector<nlohmann::json>> events;
};

// Sample 4 of the small data cannot be loaded.
Dataset without_bad_samples() {
  const Dataset numbered =
      from_source({.size = 20, .inputs = {{"", {6, 6, 1}}}, .targets = {{"", {}}}, .content = "20 samples"},
                  [](std::int64_t sample, const SampleArrays& into) {
                    if (sample == 4) throw Error(ErrorCode::invalid_file, "row 4 is ragged");
                    const std::span<float> features = into.inputs.elements<float>(0);
                    const std::span<float> targets = into.targets.elements<float>(0);
                    small_data(20).load(0, 0, sample, {features, targets});
                  });
  return numbered.skip_bad({.at_most = 3});
}

}  // namespace

TEST(PaddedBatches, GiveTheMeansOfBatchesWithoutPadding) {
  const Outcome plain = outcome_with({}, plain_model(), {});
  const Outcome padded = outcome_with({}, plain_model(), {.pad_remainder = true});

  EXPECT_EQ(padded.step, plain.step);
  ASSERT_EQ(padded.history.size(), plain.history.size());
  for (std::size_t epoch = 0; epoch < plain.history.size(); ++epoch) {
    // Samples of the last batch are in other shards, so sums are rounded in another order.
    expect_near(padded.history[epoch], plain.history[epoch]);
  }
  expect_near(padded.evaluation, plain.evaluation);
}

TEST(PaddedBatches, GiveTheSameBitsOnAnyNumberOfReplicas) {
  const Outcome expected = outcome_with({}, small_model(), {.pad_remainder = true});

  for (const int replicas : {2, 3, 4}) {
    expect_equal(outcome_with({.replicas = replicas}, small_model(), {.pad_remainder = true}), expected);
  }
}

TEST(PaddedBatches, GiveNoOutputsForTheirPadding) {
  Replica replica = Replica::alone();
  Trainer trainer(replica, plain_model(), SGD(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));

  const Tensor padded = trainer.predict(small_data(11).batch(4, {.pad_remainder = true}));
  const Tensor plain = trainer.predict(small_data(11).batch(4));

  EXPECT_EQ(padded.shape(), plain.shape());
  EXPECT_TRUE(std::ranges::equal(padded.values(), plain.values()));
}

TEST(SkippedSamples, AreToldToTheJournalAndTheResults) {
  const auto supervision = std::make_shared<KeptEvents>();
  std::string results;
  std::string logged;
  set_log_sink([&](LogLevel, std::string_view line) { logged += line; });
  struct Restore {
    ~Restore() { set_log_sink({}); }
  } const restore;
  train_on_threads({.supervision = supervision}, [&](Replica& replica) {
    Trainer trainer(replica, plain_model(), SGD(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
    const auto [training, validation] = without_bad_samples().split(0.3);
    trainer.fit(training.batch(5), {.validation = validation.batch(5)});
    trainer.evaluate(small_data(20).batch(5));
    results = replica.shared_context()->results;
  });

  const std::vector<nlohmann::json>& told = supervision->events["samples_skipped"];
  ASSERT_EQ(told.size(), 1U);
  // Training and validation are parts of one data set.
  EXPECT_EQ(told[0].at("count"), 1);
  EXPECT_THAT(logged, testing::HasSubstr("1 bad sample was left out of the data, as skip_bad()"));
  EXPECT_EQ(told[0].at("first").at(0), "sample 4: the function of from_source() failed: row 4 is ragged");
  const nlohmann::json calls = nlohmann::json::parse(results).at("calls");
  EXPECT_EQ(calls.at(0).at("skipped_samples"), told[0]);
  EXPECT_FALSE(calls.at(1).contains("skipped_samples"));
}

}  // namespace holdfast
