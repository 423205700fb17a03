// Trainings with weights of classes, and metrics that ignore weights. Bits are compared exactly.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/base/error.h"
#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "support/thrown.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kLabelledSamples = 53;
const std::vector<float> kClassWeights = {1, 3, 0.5F};

struct Labelled {
  Tensor features{Shape{kLabelledSamples, 6, 6, 1}};
  Tensor labels{Shape{kLabelledSamples}};
  Tensor weights{Shape{kLabelledSamples}};
};

// The weights are those of classes, times those of samples if there are any.
Labelled labelled(bool has_own_weights) {
  Labelled data;
  for (std::int64_t i = 0; i < kLabelledSamples; ++i) {
    Random random(9, Purpose::user, 0, static_cast<std::uint64_t>(i));
    const std::uint64_t label = random.below(3);
    for (float& value : data.features.sample(i)) value = random.normal() + static_cast<float>(label);
    const auto at = static_cast<std::size_t>(i);
    data.labels.values()[at] = static_cast<float>(label);
    data.weights.values()[at] = kClassWeights[label] * (has_own_weights ? static_cast<float>(i % 3) / 2 : 1);
  }
  return data;
}

Dataset with_weights(bool has_own_weights) {
  const Labelled data = labelled(has_own_weights);
  return from_tensors({{"", data.features}}, {{"", data.labels}}, data.weights);
}

Dataset with_own_weights_only() {
  const Labelled data = labelled(true);
  Tensor weights{Shape{kLabelledSamples}};
  for (std::size_t i = 0; i < kLabelledSamples; ++i) weights.values()[i] = static_cast<float>(i % 3) / 2;
  return from_tensors({{"", data.features}}, {{"", data.labels}}, weights);
}

Outcome weighted_outcome(const ThreadRun& run, const Dataset& data, const std::vector<float>& class_weights,
                         const std::vector<MetricHandle>& metrics = {SparseCategoricalAccuracy()}) {
  return outcomes_of(run, [&](Replica& replica) {
    Trainer trainer(replica, small_model(), Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true}), metrics);
    const FitResult fit =
        trainer.fit(data.shuffle().batch(10).prefetch(2, {.threads = 2}), {.epochs = 2,
                                                                           .validation = small_data(20).batch(7),
                                                                           .class_weights = class_weights,
                                                                           .accept_shared_samples = true});
    return Outcome{trainer.weights_digest().hex(), trainer.step(), fit.results, {}, fit.history};
  })[0];
}

TEST(ClassWeights, AreTheWeightsOfTheirSamples) {
  expect_equal(weighted_outcome({}, small_data(), kClassWeights), weighted_outcome({}, with_weights(false), {}));
}

TEST(ClassWeights, MultiplyTheWeightsOfSamples) {
  expect_equal(weighted_outcome({}, with_own_weights_only(), kClassWeights),
               weighted_outcome({}, with_weights(true), {}));
}

TEST(ClassWeights, GiveTheSameBitsOnAnyNumberOfReplicas) {
  const Outcome expected = weighted_outcome({}, small_data(), kClassWeights);

  for (const int replicas : {2, 3, 4}) {
    expect_equal(weighted_outcome({.replicas = replicas}, small_data(), kClassWeights), expected);
  }
}

TEST(ClassWeights, LeaveValidationAlone) {
  const Outcome weighted = weighted_outcome({}, small_data(), {1, 1, 1});
  const Outcome plain = weighted_outcome({}, small_data(), {});

  // Weights of 1 divide by the same number, only later.
  EXPECT_NEAR(weighted.results.at("val_loss"), plain.results.at("val_loss"), 1e-4);
}

TEST(ClassWeights, AreAChoiceOfTheRun) {
  const TemporaryFolder folder;
  weighted_outcome({.run_directory = folder.path()}, small_data(), kClassWeights);

  const std::string sentence = sentence_thrown_by([&] {
    weighted_outcome({.run_directory = folder.path()}, small_data(), {1, 2, 0.5F});
  });

  EXPECT_THAT(sentence, HasSubstr("weights/1 was 3.0 and is 2.0"));
}

TEST(ClassWeights, NameTheSampleOfAClassWithoutAWeight) {
  const std::string sentence = sentence_thrown_by([&] { weighted_outcome({}, small_data(), {1, 2}); });

  EXPECT_THAT(sentence, HasSubstr("is of class 2, and there are weights for 2 classes"));
}

TEST(ClassWeights, AreNotForSamplesThatLieOnADevice) {
  Replica replica = Replica::alone();
  Trainer trainer(replica, small_model(), SGD(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));

  const std::string sentence = sentence_thrown_by([&] {
    trainer.fit(small_data().batch(10).keep_on_device(), {.class_weights = {1, 2, 3}});
  });

  EXPECT_THAT(sentence, HasSubstr("keep_on_device() copies the source"));
}

// The weighted mean of 0 and 1 by hand, next to their plain mean.
TEST(MetricWeights, MayBeIgnored) {
  const std::vector<MetricHandle> metrics = {
      SparseCategoricalAccuracy({.name = "weighted"}), unweighted(SparseCategoricalAccuracy({.name = "plain"})),
      unweighted(metrics::Perplexity{{.from_logits = true, .name = "of_values"}})};
  for (const int replicas : {1, 3}) {
    train_on_threads({.replicas = replicas}, [&](Replica& replica) {
      const Sequential model{Input{2}, Flatten{}};
      Trainer trainer(replica, model, SGD(0.01F), SparseCategoricalCrossentropy({.from_logits = true}), metrics);
      const Tensor scores(Shape{4, 2}, std::vector<float>{1, 0, 1, 0, 1, 0, 0, 1});
      const Tensor labels(Shape{4}, std::vector<float>{0, 0, 1, 0});
      const Tensor weights(Shape{4}, std::vector<float>{1, 1, 6, 0});
      const Dataset weighted = from_tensors({{"", scores}}, {{"", labels}}, weights);

      const Logs logs = trainer.evaluate(weighted.batch(4));
      const Logs without = trainer.evaluate(from_tensors(scores, labels).batch(4));

      EXPECT_EQ(logs.at("weighted"), 2.0 / 8);
      EXPECT_EQ(logs.at("plain"), 2.0 / 4);
      EXPECT_EQ(without.at("plain"), 2.0 / 4);
      EXPECT_EQ(logs.at("of_values"), without.at("of_values"));
      EXPECT_FALSE(logs.contains("plain (samples)"));
    });
  }
}

TEST(MetricWeights, AreAChoiceOfTheRun) {
  const TemporaryFolder folder;
  weighted_outcome({.run_directory = folder.path()}, small_data(), {}, {SparseCategoricalAccuracy()});

  const std::string sentence = sentence_thrown_by([&] {
    weighted_outcome({.run_directory = folder.path()}, small_data(), {}, {unweighted(SparseCategoricalAccuracy())});
  });

  EXPECT_THAT(sentence, HasSubstr("ignores_weights was not set and is true"));
}

}  // namespace
}  // namespace holdfast
