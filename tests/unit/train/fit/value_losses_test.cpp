// Trainings with losses and metrics that are functions of values, and with positions. Bits are compared exactly.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "unit/train/support/played_callbacks.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

using testing::DoubleNear;
using testing::HasSubstr;

constexpr std::int64_t kSamplesOfValueLosses = 37;

LossFunction squared_error() {
  return {"squared_error", [](const Value& o, const Value& t) { return square(o - t); }};
}

LossFunction binary_focal() {
  return {"focal", [](const Value& p, const Value& t) {
            const Value right = t * p + (1.0F - t) * (1.0F - p);
            return -square(1.0F - right) * logarithm(right);
          }};
}

MetricFunction precision() {
  return {"precision",
          [](const Value& outputs, const Value& targets) {
            const Value positive = less(0.5F, outputs);
            return std::vector<Value>{positive * targets, positive};
          },
          [](std::span<const double> sums, double) { return sums[0] / sums[1]; }};
}

Dataset binary_data(bool is_weighted) {
  Tensor x(Shape{kSamplesOfValueLosses, 2}), y(Shape{kSamplesOfValueLosses, 1}), weights(Shape{kSamplesOfValueLosses});
  Random random(5, Purpose::user, 0, 0);
  for (std::int64_t i = 0; i < kSamplesOfValueLosses; ++i) {
    const float a = random.uniform() - 0.5F, b = random.uniform() - 0.5F;
    x.values()[2 * i] = a;
    x.values()[2 * i + 1] = b;
    y.values()[i] = a + 0.3F * b > 0 ? 1 : 0;
    weights.values()[i] = i % 4 == 0 ? 0 : 1 + random.uniform();
  }
  if (!is_weighted) return from_tensors(x, y);
  return from_tensors({{"x", x}}, {{"y", y}}, weights);
}

Sequential binary_model() {
  return Sequential{Input{2}, Dense{8, {.activation = Activation::tanh}},
                    Dense{1, {.activation = Activation::sigmoid}}};
}

Outcome train_value_losses(Replica& replica, const Dataset& data, std::vector<CallbackHandle> callbacks = {}) {
  Trainer trainer(replica, binary_model(), Adam(0.05F), binary_focal(), {precision(), BinaryAccuracy{}});
  const FitResult fit = trainer.fit(data.shuffle().batch(8), {.epochs = 3, .callbacks = std::move(callbacks)});
  return {trainer.weights_digest().hex(), trainer.step(), fit.results, trainer.evaluate(data.batch(8)), fit.history};
}

TEST(ValueLosses, GiveTheSameBitsOnAnyNumberOfReplicas) {
  for (const bool is_weighted : {false, true}) {
    const Dataset data = binary_data(is_weighted);
    const auto outcome = [&](int replicas, int workers) {
      return outcomes_of({.replicas = replicas, .workers = workers},
                         [&](Replica& r) { return train_value_losses(r, data); })[0];
    };
    const Outcome alone = outcome(1, 1);

    EXPECT_GT(alone.results.at("precision"), 0.5);
    EXPECT_LT(alone.results.at("loss"), alone.history[0].at("loss"));
    expect_equal(outcome(2, 1), alone);
    expect_equal(outcome(4, 1), alone);
    expect_equal(outcome(1, 3), alone);
  }
}

// An epoch has 5 steps, so the savepoint of step 6 has the sums of an epoch that is under way.
TEST(ValueLosses, ContinueFromASavepointWithTheirSums) {
  const Dataset data = binary_data(true);
  const TemporaryFolder folder;
  const auto run = [&](const std::function<std::vector<CallbackHandle>()>& callbacks) {
    return outcomes_of({.replicas = 2, .run_directory = folder.path()},
                       [&](Replica& replica) { return train_value_losses(replica, data, callbacks()); })[0];
  };
  using Callbacks = std::vector<CallbackHandle>;
  EXPECT_THROW(run([]() -> Callbacks { return {ModelCheckpoint({.every_steps = 3}), FailAt(8)}; }), std::runtime_error);

  const Outcome continued = run([]() -> Callbacks { return {ModelCheckpoint({.every_steps = 3})}; });

  expect_equal(continued,
               outcomes_of({.replicas = 2}, [&](Replica& replica) { return train_value_losses(replica, data); })[0]);
}

Outcome train_losses_of_keras(Replica& replica, const Loss& loss, const Dataset& data) {
  Trainer trainer(replica, binary_model(), Adam(0.05F), loss,
                  {metrics::F1Score({.threshold = 0.5F}), metrics::Precision(), metrics::TruePositives(),
                   metrics::FalseNegatives(), metrics::R2Score()});
  const FitResult fit = trainer.fit(data.shuffle().batch(8), {.epochs = 3});
  return {trainer.weights_digest().hex(), trainer.step(), fit.results, trainer.evaluate(data.batch(8)), fit.history};
}

TEST(LossesOfKeras, GiveTheSameBitsOnAnyNumberOfReplicas) {
  const losses::BinaryFocalCrossentropy focal({.gamma = 1.5F});
  const BinaryCrossentropy smoothed({.label_smoothing = 0.125F});
  for (const Loss* loss : std::initializer_list<const Loss*>{&focal, &smoothed}) {
    const Dataset data = binary_data(true);
    const auto outcome = [&](int replicas) {
      return outcomes_of({.replicas = replicas}, [&](Replica& r) { return train_losses_of_keras(r, *loss, data); })[0];
    };
    const Outcome alone = outcome(1);

    expect_equal(outcome(2), alone);
    EXPECT_LT(alone.results.at("loss"), alone.history[0].at("loss")) << loss->name();
    const double hits = alone.evaluation.at("true_positives"), misses = alone.evaluation.at("false_negatives");
    const double precision = alone.evaluation.at("precision"), recall = hits / (hits + misses);
    EXPECT_NEAR(alone.evaluation.at("f1_score"), 2 * precision * recall / (precision + recall), 1e-5);
    EXPECT_GT(alone.evaluation.at("r2_score"), 0);
  }
}

Outcome train_metrics_of_arrays(Replica& replica, const Dataset& data, std::vector<CallbackHandle> callbacks = {}) {
  Trainer trainer(replica, binary_model(), Adam(0.05F), binary_focal(),
                  {metrics::AUC(), metrics::AUC({.num_thresholds = 20, .curve = metrics::AUCCurve::pr, .name = "pr"}),
                   metrics::PrecisionAtRecall(0.75F), metrics::BinaryIoU(), metrics::Precision(),
                   metrics::Precision({.thresholds = {0.25F, 0.5F}, .name = "p"})});
  const FitResult fit = trainer.fit(data.shuffle().batch(8), {.epochs = 3, .callbacks = std::move(callbacks)});
  return {trainer.weights_digest().hex(), trainer.step(), fit.results, trainer.evaluate(data.batch(8)), fit.history};
}

TEST(MetricsOfArrays, GiveTheSameBitsOnAnyNumberOfReplicas) {
  for (const bool is_weighted : {false, true}) {
    const Dataset data = binary_data(is_weighted);
    const auto outcome = [&](int replicas, int workers) {
      return outcomes_of({.replicas = replicas, .workers = workers},
                         [&](Replica& r) { return train_metrics_of_arrays(r, data); })[0];
    };
    const Outcome alone = outcome(1, 1);

    EXPECT_GT(alone.evaluation.at("auc"), 0.6);
    EXPECT_LE(alone.evaluation.at("auc"), 1 + 1e-6);
    EXPECT_GE(alone.evaluation.at("precision_at_recall"), 0.5);
    EXPECT_EQ(alone.evaluation.at("p_0.5"), alone.evaluation.at("precision"));
    expect_equal(outcome(2, 1), alone);
    expect_equal(outcome(4, 1), alone);
    expect_equal(outcome(1, 3), alone);
  }
}

// The savepoint of step 6 has hundreds of sums of an epoch that is under way.
TEST(MetricsOfArrays, ContinueFromASavepointWithTheirSums) {
  const Dataset data = binary_data(true);
  const TemporaryFolder folder;
  const auto run = [&](const std::function<std::vector<CallbackHandle>()>& callbacks) {
    return outcomes_of({.replicas = 2, .run_directory = folder.path()},
                       [&](Replica& replica) { return train_metrics_of_arrays(replica, data, callbacks()); })[0];
  };
  using Callbacks = std::vector<CallbackHandle>;
  EXPECT_THROW(run([]() -> Callbacks { return {ModelCheckpoint({.every_steps = 3}), FailAt(8)}; }), std::runtime_error);

  const Outcome continued = run([]() -> Callbacks { return {ModelCheckpoint({.every_steps = 3})}; });

  expect_equal(continued, outcomes_of({.replicas = 2},
                                      [&](Replica& replica) { return train_metrics_of_arrays(replica, data); })[0]);
}

// The precision of a whole epoch is not the mean of the precisions of its batches.
TEST(MetricsOfSeveralSums, AreThoseOfAllSamples) {
  for (const bool is_weighted : {false, true}) {
    const Dataset data = binary_data(is_weighted);
    const Outcome outcome = outcomes_of({.replicas = 2}, [&](Replica& r) { return train_value_losses(r, data); })[0];
    double hits = 0, positives = 0;
    {
      Replica replica = Replica::alone({.seed = 3, .shards = 4});
      Sequential model = binary_model();
      Trainer trainer(replica, model, Adam(0.05F), binary_focal(), {precision(), BinaryAccuracy{}});
      trainer.fit(data.shuffle().batch(8), {.epochs = 3});
      Tensor x(Shape{kSamplesOfValueLosses, 2}), y(Shape{kSamplesOfValueLosses, 1});
      Random random(5, Purpose::user, 0, 0);
      std::vector<double> weights(kSamplesOfValueLosses, 1);
      for (std::int64_t i = 0; i < kSamplesOfValueLosses; ++i) {
        const float a = random.uniform() - 0.5F, b = random.uniform() - 0.5F;
        x.values()[2 * i] = a;
        x.values()[2 * i + 1] = b;
        y.values()[i] = a + 0.3F * b > 0 ? 1 : 0;
        const float weight = i % 4 == 0 ? 0 : 1 + random.uniform();
        if (is_weighted) weights[i] = weight;
      }
      const Tensor outputs = trainer.predict(x);
      for (std::int64_t i = 0; i < kSamplesOfValueLosses; ++i) {
        const bool is_positive = outputs.values()[i] > 0.5F;
        hits += is_positive ? weights[i] * y.values()[i] : 0;
        positives += is_positive ? weights[i] : 0;
      }
    }
    ASSERT_GT(positives, 0);
    EXPECT_NEAR(outcome.evaluation.at("precision"), hits / positives, 1e-6);
  }
}

TEST(ValueLosses, TrainAsTheBuiltInLossDoes) {
  const Dataset data = binary_data(true);
  const auto train_with_loss = [&](const Loss& loss) {
    Replica replica = Replica::alone({.seed = 3});
    Sequential model = binary_model();
    Trainer trainer(replica, model, SGD(0.1F), loss);
    return trainer.fit(data.batch(8), {.epochs = 5}).results.at("loss");
  };

  EXPECT_NEAR(train_with_loss(squared_error()), train_with_loss(MeanSquaredError{}), 1e-5);
}

TEST(ValueLosses, ThatDoNotFitTheModelAreRefusedByTheTrainer) {
  Replica replica = Replica::alone();
  const auto refusal_of = [&](const Loss& loss, std::vector<MetricHandle> metrics = {}) {
    return sentence_thrown_by([&] { Trainer(replica, binary_model(), SGD(0.1F), loss, metrics); });
  };

  EXPECT_THAT(refusal_of(LossFunction("mine", [](const Value& o, const Value&) { return less(o, 0.5F); })),
              HasSubstr("loss \"mine\" has no gradient for the outputs"));
  EXPECT_THAT(refusal_of(LossFunction("mine", [](const Value& o, const Value& t) { return o - slice(t, 0, 1, 2); })),
              HasSubstr("elements 1 to 2 of axis 0"));
  EXPECT_THAT(refusal_of(squared_error(), {MetricFunction("loss", [](const Value& o, const Value&) { return o; })}),
              HasSubstr("a metric is called \"loss\""));
}

TEST(ValueLosses, TakeTargetsOfAnotherShape) {
  // The likelihood of a normal distribution, of which the model gives mean and logarithm of the variance.
  const LossFunction likelihood("normal",
                                [](const Value& o, const Value& t) {
                                  const Value mean = slice(o, 0, 0, 1), log_variance = slice(o, 0, 1, 2);
                                  return 0.5F * (log_variance + square(t - mean) * exponential(-log_variance));
                                },
                                {.target_shape = Shape{1}});
  const Dataset data = from_tensors(Tensor(Shape{2, 2}, {1, 0, 3, std::log(2.0F)}), Tensor(Shape{2, 1}, {0, 1}));
  Replica replica = Replica::alone();
  Trainer trainer(replica, Sequential{Input{2}, Rescaling{1}}, SGD(0.1F), likelihood);

  EXPECT_THAT(trainer.evaluate(data.batch(2)).at("loss"), DoubleNear(0.5 * (1 + std::log(2.0) + 2) / 2, 1e-6));
}

// Two positions of three classes, whose scores are the features.
class Positions : public testing::Test {
 protected:
  // The loss of score row r for label l.
  static double loss(std::vector<double> scores, std::size_t label) {
    double sum = 0;
    for (const double score : scores) sum += std::exp(score);
    return std::log(sum) - scores[label];
  }

  Logs evaluate(const std::optional<Tensor>& weights, const std::vector<MetricHandle>& metrics) {
    Replica replica = Replica::alone();
    Trainer trainer(replica, Sequential{Input{2, 3}, Rescaling{1}}, SGD(0.1F),
                    SparseCategoricalCrossentropy{{.from_logits = true}}, metrics);
    return trainer.evaluate(from_tensors({{"x", x_}}, {{"y", labels_}}, weights).batch(2));
  }

  const Tensor x_{Shape{2, 2, 3}, {1, 2, 3, 0, 0, 0, 5, 1, 1, 2, 7, 1}};
  const Tensor labels_{Shape{2, 2}, {2, 0, 1, 1}};
  const double first_ = loss({1, 2, 3}, 2), second_ = loss({0, 0, 0}, 0), third_ = loss({5, 1, 1}, 1),
               fourth_ = loss({2, 7, 1}, 1);
};

TEST_F(Positions, HaveALossEach) {
  const Logs logs = evaluate(std::nullopt, {SparseCategoricalAccuracy{}});

  EXPECT_THAT(logs.at("loss"), DoubleNear((first_ + second_ + third_ + fourth_) / 4, 1e-6));
  EXPECT_EQ(logs.at("sparse_categorical_accuracy"), 0.75);
}

TEST_F(Positions, MayHaveAWeightEach) {
  const Logs logs = evaluate(Tensor(Shape{2, 2}, {1, 0, 3, 1}), {SparseCategoricalAccuracy{}});

  EXPECT_THAT(logs.at("loss"), DoubleNear((first_ + 3 * third_ + fourth_) / 5, 1e-6));
  EXPECT_THAT(logs.at("sparse_categorical_accuracy"), DoubleNear(2.0 / 5, 1e-7));
}

TEST_F(Positions, MayShareTheWeightOfTheirSample) {
  const Logs logs = evaluate(Tensor(Shape{2}, {1, 3}), {SparseCategoricalAccuracy{}});

  EXPECT_THAT(logs.at("loss"), DoubleNear(((first_ + second_) / 2 + 3 * (third_ + fourth_) / 2) / 4, 1e-6));
  EXPECT_THAT(logs.at("sparse_categorical_accuracy"), DoubleNear((1 + 3 * 0.5) / 4, 1e-7));
}

TEST_F(Positions, AreNotClasses) {
  Replica replica = Replica::alone();
  Trainer trainer(replica, Sequential{Input{2, 3}, Rescaling{1}}, SGD(0.1F),
                  CategoricalCrossentropy{{.from_logits = true}});
  const Dataset data = from_tensors({{"x", x_}}, {{"y", Tensor(Shape{2, 2, 3})}}, Tensor(Shape{2, 2, 3}));

  EXPECT_THAT(sentence_thrown_by([&] { trainer.evaluate(data.batch(2)); }),
              HasSubstr("takes one weight a sample, or one for each position"));
}

// Positions are samples of a flattened model, so the gradients are those of a batch of positions.
TEST_F(Positions, TrainAsSamplesOfTheirOwn) {
  const auto weights_after = [](const Sequential& described, const Tensor& x, const Tensor& labels,
                                std::int64_t batch) {
    Replica replica = Replica::alone({.seed = 3, .shards = 1});
    Sequential model = described;
    Trainer trainer(replica, model, SGD(0.5F), SparseCategoricalCrossentropy{{.from_logits = true}});
    trainer.fit(from_tensors(x, labels).batch(batch), {.epochs = 4});
    return std::vector<float>(model.parameter_values().begin(), model.parameter_values().end());
  };
  const Tensor rows(Shape{4, 3}, std::vector<float>(x_.values().begin(), x_.values().end()));
  const Tensor flat_labels(Shape{4}, std::vector<float>(labels_.values().begin(), labels_.values().end()));

  const auto of_positions = weights_after(Sequential{Input{2, 3}, Dense{3}}, x_, labels_, 2);
  const auto of_samples = weights_after(Sequential{Input{3}, Dense{3}}, rows, flat_labels, 4);

  ASSERT_EQ(of_positions.size(), of_samples.size());
  for (std::size_t i = 0; i < of_samples.size(); ++i) EXPECT_NEAR(of_positions[i], of_samples[i], 1e-6) << i;
}

}  // namespace
}  // namespace holdfast
