// Weights of each output, and targets that a loss ignores: each output has a divisor of its own. Gradients are compared
// with sums in double, bits exactly.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "holdfast/base/error.h"
#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "support/thrown.h"
#include "unit/train/support/played_callbacks.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

using testing::DoubleNear;
using testing::HasSubstr;

constexpr std::int64_t kSamples = 45;
constexpr std::int64_t kPositions = 4;
constexpr int kClasses = 3;

struct Arrays {
  std::vector<float> x;             // [samples, positions, 2]
  std::vector<std::int32_t> words;  // [samples, positions]
  std::vector<float> values;        // [samples, 1]
  std::vector<float> mask;          // of words
  std::vector<float> weights;       // of values
};

Arrays drawn_arrays() {
  Arrays arrays;
  for (std::int64_t i = 0; i < kSamples; ++i) {
    Random random(11, Purpose::user, 0, static_cast<std::uint64_t>(i));
    for (std::int64_t position = 0; position < kPositions; ++position) {
      arrays.x.push_back(random.normal());
      arrays.x.push_back(random.normal());
      arrays.words.push_back(static_cast<std::int32_t>(random.below(kClasses)));
      arrays.mask.push_back(position <= i % kPositions ? 1 : 0);
    }
    arrays.values.push_back(random.normal());
    arrays.weights.push_back(i % 5 == 0 ? 0 : i % 2 == 0 ? 0.25F : 1);
  }
  return arrays;
}

std::vector<NamedTensor> inputs_of(const Arrays& a) {
  return {{"x", Tensor(Shape{kSamples, kPositions, 2}, a.x)}};
}
NamedTensor words_of(const Arrays& a) {
  return {"words", Tensor(Shape{kSamples, kPositions}, a.words)};
}
NamedTensor values_of(const Arrays& a) {
  return {"value", Tensor(Shape{kSamples, 1}, a.values)};
}

Dataset masked_data(const Arrays& a) {
  return from_tensors(inputs_of(a), {words_of(a), values_of(a)},
                      std::vector<NamedTensor>{{"value", Tensor(Shape{kSamples}, a.weights)},
                                               {"words", Tensor(Shape{kSamples, kPositions}, a.mask)}});
}

Model tagger(float dropout = 0.2F) {
  const Value x = input({kPositions, 2}, {.name = "x"});
  const Value hidden = Dropout{dropout}(Dense{5, {.activation = Activation::tanh}}(x));
  return Model({x}, {Dense{kClasses, {.name = "words"}}(hidden), Dense{1, {.name = "value"}}(Flatten{}(hidden))});
}

std::vector<LossHandle> losses(std::optional<std::int64_t> ignored = {}) {
  return {SparseCategoricalCrossentropy({.from_logits = true, .ignore_class = ignored}), {MeanSquaredError{}, 0.5F}};
}

Outcome train(Replica& replica, const Dataset& data, const std::vector<LossHandle>& losses) {
  Trainer trainer(replica, tagger(), Adam(0.02F), losses,
                  {{SparseCategoricalAccuracy{}, "words"}, {MeanAbsoluteError{}, "value"}});
  const FitResult fit = trainer.fit(data.shuffle().batch(8), {.epochs = 2});
  const Logs evaluation = trainer.evaluate(data.batch(8));
  return {trainer.weights_digest().hex(), trainer.step(), fit.results, evaluation, fit.history};
}

void expect_equal_bits_on_replicas(const Dataset& data, const std::vector<LossHandle>& losses) {
  const auto trained = [&](int replicas) {
    return outcomes_of({.replicas = replicas}, [&](Replica& replica) { return train(replica, data, losses); });
  };
  const Outcome alone = trained(1).front();
  EXPECT_TRUE(std::isfinite(alone.results.at("loss")));
  for (const int replicas : {2, 4}) {
    for (const Outcome& outcome : trained(replicas)) expect_equal(outcome, alone);
  }
}

TEST(WeightsOfOutputs, GiveTheSameBitsOnAnyNumberOfReplicas) {
  expect_equal_bits_on_replicas(masked_data(drawn_arrays()), losses());
}

TEST(IgnoredClasses, GiveTheSameBitsOnAnyNumberOfReplicas) {
  const Arrays a = drawn_arrays();
  expect_equal_bits_on_replicas(from_tensors(inputs_of(a), {words_of(a), values_of(a)}), losses(1));
  expect_equal_bits_on_replicas(masked_data(a), losses(1));
}

// Two outputs w * x of one batch, each with a weight for each sample.
struct TwoScales {
  std::vector<float> x = {1, 2, 3, 4, 5};
  std::vector<float> left = {1, 0, 0.5F, 0, 2};
  std::vector<float> right = {0, 3, 0, 0.25F, 0};
  std::vector<float> targets = {1, -1, 2, 0, 1};

  Tensor tensor(const std::vector<float>& numbers) const { return Tensor(Shape{5, 1}, numbers); }
  Tensor weight(const std::vector<float>& numbers) const { return Tensor(Shape{5}, numbers); }
  Dataset data() const {
    return from_tensors({{"x", tensor(x)}}, {{"left", tensor(targets)}, {"right", tensor(targets)}},
                        std::vector<NamedTensor>{{"right", weight(right)}, {"left", weight(left)}});
  }
  static Model model() {
    const DenseOptions options = {.use_bias = false, .kernel_initializer = Initializer::ones()};
    const Value input_value = input({1}, {.name = "x"});
    const auto output = [&](const char* name) {
      DenseOptions own = options;
      own.name = name;
      return Dense{1, own}(input_value);
    };
    return Model({input_value}, {output("left"), output("right")});
  }
  // The loss sum of w * (x - t)^2 / sum of w at a kernel of 1, and its derivative.
  double loss(const std::vector<float>& weights) const {
    return mean(weights, [](double d, double) { return d * d; });
  }
  double slope(const std::vector<float>& weights) const {
    return mean(weights, [](double d, double at) { return 2 * d * at; });
  }
  template <class Of>
  double mean(const std::vector<float>& weights, const Of& of) const {
    double sum = 0, weight = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto w = static_cast<double>(weights[i]);
      sum += w * of(static_cast<double>(x[i]) - static_cast<double>(targets[i]), static_cast<double>(x[i]));
      weight += w;
    }
    return sum / weight;
  }
};

// Arrays of weights begin at whole cache lines.
float right_kernel(const Model& model) {
  return model.parameter_values()[model.parameters().entries()[1].offset];
}

TEST(WeightsOfOutputs, DivideEachOutputByItsOwnSum) {
  const TwoScales example;
  for (const int shards : {1, 4}) {
    train_on_threads({.replicas = 1, .shards = shards}, [&](Replica& replica) {
      Model model = TwoScales::model();
      Trainer trainer(replica, model, SGD(0.1F), {MeanSquaredError{}, {MeanSquaredError{}, 2.0F}},
                      {{MeanAbsoluteError{}, "right"}});
      const Logs before = trainer.evaluate(example.data().batch(2));
      const Logs logs = trainer.fit(example.data().batch(5)).results;

      // Rounding of a few f32 numbers below 100.
      EXPECT_THAT(model.parameter_values()[0],
                  testing::FloatNear(static_cast<float>(1 - 0.1 * example.slope(example.left)), 1e-5F));
      EXPECT_THAT(right_kernel(model),
                  testing::FloatNear(static_cast<float>(1 - 0.1 * 2 * example.slope(example.right)), 1e-4F));
      for (const Logs& of : {before, logs}) {
        EXPECT_THAT(of.at("left_loss"), DoubleNear(example.loss(example.left), 1e-5));
        EXPECT_THAT(of.at("right_loss"), DoubleNear(example.loss(example.right), 1e-5));
        EXPECT_THAT(of.at("right_mean_absolute_error"), DoubleNear((3 * 3 + 0.25 * 4) / 3.25, 1e-5));
        EXPECT_THAT(of.at("loss"), DoubleNear(of.at("left_loss") + 2 * of.at("right_loss"), 1e-9));
      }
    });
  }
}

TEST(WeightsOfOutputs, MaskAWholeOutputOfABatch) {
  TwoScales example;
  example.right = {0, 0, 0, 0, 0};
  example.left = {1, 1, 1, 1, 1};
  Replica replica = Replica::alone();
  Model model = TwoScales::model();
  Trainer trainer(replica, model, SGD(0.1F), {MeanSquaredError{}, MeanSquaredError{}});

  const Logs logs = trainer.fit(example.data().batch(5)).results;

  EXPECT_EQ(right_kernel(model), 1.0F);
  EXPECT_NE(model.parameter_values()[0], 1.0F);
  EXPECT_THAT(logs.at("loss"), DoubleNear(example.loss(example.left), 1e-5));
  EXPECT_TRUE(std::isnan(logs.at("right_loss")));
}

TEST(WeightsOfOutputs, ApplyNothingIfTheyAreZeroForAWholeBatch) {
  TwoScales example;
  example.left = example.right = {0, 0, 0, 0, 0};
  Replica replica = Replica::alone();
  Model model = TwoScales::model();
  Trainer trainer(replica, model, SGD({.learning_rate = 0.1F, .weight_decay = 0.1F}),
                  {MeanSquaredError{}, MeanSquaredError{}});

  trainer.fit(example.data().batch(5));

  EXPECT_EQ(model.parameter_values()[0], 1.0F);
  EXPECT_EQ(trainer.step(), 1);
}

TEST(WeightsOfOutputs, BelongToTheTargetsInAnyOrder) {
  const Arrays a = drawn_arrays();
  const Dataset reordered =
      from_tensors(inputs_of(a), {values_of(a), words_of(a)},
                   std::vector<NamedTensor>{{"words", Tensor(Shape{kSamples, kPositions}, a.mask)},
                                            {"value", Tensor(Shape{kSamples}, a.weights)}});
  const auto trained = [](const Dataset& data) {
    return outcomes_of({.replicas = 2}, [&](Replica& replica) { return train(replica, data, losses()); }).front();
  };

  expect_equal(trained(reordered), trained(masked_data(a)));
}

TEST(WeightsOfOutputs, ContinueFromASavepointWithinAnEpoch) {
  const Dataset data = masked_data(drawn_arrays());
  const auto run = [&](const TemporaryFolder& folder, std::optional<std::int64_t> fail_at) {
    return outcomes_of({.run_directory = folder.path()}, [&](Replica& replica) {
      Trainer trainer(replica, tagger(), Adam(0.02F), losses());
      std::vector<CallbackHandle> callbacks = {ModelCheckpoint({.every_steps = 2})};
      if (fail_at) callbacks.push_back(FailAt(*fail_at));
      const FitResult fit = trainer.fit(data.shuffle().batch(8), {.epochs = 3, .callbacks = callbacks});
      return Outcome{trainer.weights_digest().hex(), trainer.step(), fit.results, {}, fit.history};
    })[0];
  };
  const TemporaryFolder undisturbed;
  const Outcome expected = run(undisturbed, {});
  const TemporaryFolder folder;
  // An epoch has 6 steps, so the last savepoint stands in the second one.
  EXPECT_THROW(run(folder, 9), std::runtime_error);

  expect_equal(run(folder, {}), expected);
}

TEST(WeightsOfOutputs, AreAccumulatedOverSeveralBatches) {
  const Dataset data = masked_data(drawn_arrays());
  const auto digest_of = [&](std::int64_t batch, std::int64_t accumulate, int shards) {
    std::string digest;
    train_on_threads({.replicas = 1, .shards = shards}, [&](Replica& replica) {
      Trainer trainer(replica, tagger(0), Adam(0.02F), losses());
      trainer.fit(data.batch(batch), {.epochs = 1, .accumulate = accumulate});
      digest = trainer.weights_digest().hex();
    });
    return digest;
  };

  // Powers of two: 4 batches in 2 shards are added as one batch in 8 shards.
  EXPECT_EQ(digest_of(8, 4, 2), digest_of(32, 1, 8));
}

TEST(WeightsOfOutputs, AreNeededForEachTarget) {
  const TwoScales example;
  const auto sentence_for = [&](std::vector<NamedTensor> weights) {
    return sentence_thrown_by([&] {
      from_tensors({{"x", example.tensor(example.x)}},
                   {{"left", example.tensor(example.targets)}, {"right", example.tensor(example.targets)}}, weights);
    });
  };

  EXPECT_THAT(sentence_for({{"left", example.weight(example.left)}}),
              HasSubstr("there are weights for \"left\", and the targets are \"left\", \"right\""));
  EXPECT_THAT(sentence_for({{"left", example.weight(example.left)}, {"right", example.weight({1, 1, -1, 1, 1})}}),
              HasSubstr("sample weight 2 is -1"));
  EXPECT_THAT(sentence_for({{"left", Tensor(Shape{5, 3})}, {"right", example.weight(example.right)}}),
              HasSubstr("the weights of target \"left\" have the shape [5, 3], and a sample of it the shape [1]"));
}

TEST(WeightsOfOutputs, MayBeThoseOfManyOutputs) {
  constexpr int kOutputs = 40;
  const TwoScales example;
  const Value x = input({1}, {.name = "x"});
  std::vector<Value> outputs;
  std::vector<NamedTensor> targets, weights;
  std::vector<LossHandle> losses;
  for (int output = 0; output < kOutputs; ++output) {
    const std::string name = "output_" + std::to_string(output);
    outputs.push_back(Dense{1, {.name = name}}(x));
    targets.push_back({name, example.tensor(example.targets)});
    weights.push_back({name, example.weight(output % 2 == 0 ? example.left : example.right)});
    losses.push_back(MeanSquaredError{});
  }
  Replica replica = Replica::alone();
  Trainer trainer(replica, Model({x}, outputs), SGD(0.1F), losses);

  const Logs logs = trainer.fit(from_tensors({{"x", example.tensor(example.x)}}, targets, weights).batch(5)).results;

  EXPECT_EQ(trainer.step(), 1);
  EXPECT_TRUE(std::isfinite(logs.at("loss")));
}

// What Keras 3.15.1 gives, with the reduction mean_with_sample_weight. Its numbers are f32.
TEST(WeightsOfOutputs, TrainAsInKeras) {
  const TwoScales example;
  Replica replica = Replica::alone();
  Model model = TwoScales::model();
  Trainer trainer(replica, model, SGD(0.1F), {MeanSquaredError{}, {MeanSquaredError{}, 2.0F}});

  const Logs logs = trainer.fit(example.data().batch(5)).results;

  EXPECT_NEAR(logs.at("loss"), 28.36263656616211, 1e-5);
  EXPECT_NEAR(model.parameter_values()[0], -1.3714287281036377F, 1e-6F);
  EXPECT_NEAR(right_kernel(model), -1.7076923847198486F, 1e-6F);
}

// What Keras 3.15.1 gives for these logits: without weights by its default reduction, else by mean_with_sample_weight.
TEST(IgnoredClasses, GiveTheLossOfKeras) {
  const Tensor logits(Shape{3, 2, 3},
                      {0.5F, -1, 2, 0.1F, 0.2F, 0.3F, 1.5F, 0, -0.5F, 0, 0, 1, 2, 1, 0, -1, 0.5F, 0.25F});
  const Tensor labels(Shape{3, 2}, std::vector<std::int32_t>{0, -1, 2, 1, -1, -1});
  const Sequential model{Input{2, 3}, Rescaling{1}};
  for (const int shards : {1, 2}) {
    train_on_threads({.replicas = 1, .shards = shards}, [&](Replica& replica) {
      Trainer trainer(replica, model, SGD(0.1F),
                      SparseCategoricalCrossentropy({.from_logits = true, .ignore_class = -1}));
      const auto loss_of = [&](const Dataset& data) { return trainer.evaluate(data.batch(2)).at("loss"); };

      EXPECT_NEAR(loss_of(from_tensors({{"x", logits}}, {{"y", labels}})), 1.8663705587387085, 1e-6);
      EXPECT_NEAR(loss_of(from_tensors({{"x", logits}}, {{"y", labels}}, Tensor(Shape{3}, {1, 0.5F, 2}))),
                  1.8351058959960938, 1e-6);
    });
  }
}

// The gradient of one output with two ignored labels is that of the others alone.
TEST(IgnoredClasses, AreLeftOutOfLossAndDivisor) {
  const std::vector<float> x = {0.5F, -1, 2, 0.25F, 1, -2, 1.5F, 0};
  const std::vector<std::int32_t> labels = {0, 255, 1, 255};
  const auto trained = [](const Dataset& data, std::optional<std::int64_t> ignored, int shards) {
    std::vector<float> kernel;
    double loss = 0;
    train_on_threads({.replicas = 1, .shards = shards}, [&](Replica& replica) {
      Sequential model{Input{2}, Dense{2, {.kernel_initializer = Initializer::ones()}}};
      Trainer trainer(replica, model, SGD(0.5F),
                      SparseCategoricalCrossentropy({.from_logits = true, .ignore_class = ignored}));
      loss = trainer.fit(data.batch(4)).results.at("loss");
      kernel.assign(model.parameter_values().begin(), model.parameter_values().end());
    });
    return std::pair(loss, kernel);
  };
  const auto expected =
      trained(from_tensors(Tensor(Shape{2, 2}, {0.5F, -1, 1, -2}), Tensor(Shape{2}, std::vector<float>{0, 1})), {}, 1);

  for (const int shards : {1, 4}) {
    const auto found = trained(from_tensors(Tensor(Shape{4, 2}, x), Tensor(Shape{4}, labels)), 255, shards);
    EXPECT_THAT(found.first, DoubleNear(expected.first, 1e-6));
    for (std::size_t i = 0; i < found.second.size(); ++i) EXPECT_NEAR(found.second[i], expected.second[i], 1e-6F);
  }
}

TEST(IgnoredClasses, MayBeAllOfABatch) {
  const Dataset data =
      from_tensors(Tensor(Shape{3, 2}, {1, 2, 3, 4, 5, 6}), Tensor(Shape{3}, std::vector<float>{-1, -1, -1}));
  Replica replica = Replica::alone();
  Sequential model{Input{2}, Dense{2, {.kernel_initializer = Initializer::ones()}}};
  Trainer trainer(replica, model, Adam(0.5F), SparseCategoricalCrossentropy({.from_logits = true, .ignore_class = -1}));

  const Logs logs = trainer.fit(data.batch(3)).results;

  EXPECT_EQ(model.parameter_values()[0], 1.0F);
  EXPECT_TRUE(std::isnan(logs.at("loss")));
}

// Penalties are added to the mean loss, whatever it is divided by.
TEST(IgnoredClasses, LeavePenaltiesAsTheyAre) {
  const auto loss_of = [](std::vector<float> labels) {
    Replica replica = Replica::alone();
    const Sequential model{Input{2}, Dense{2,
                                           {.kernel_initializer = Initializer::zeros(),
                                            .bias_initializer = Initializer::ones(),
                                            .bias_regularizer = Regularizer::l2(0.25F)}}};
    Trainer trainer(replica, model, SGD(0.0F),
                    SparseCategoricalCrossentropy({.from_logits = true, .ignore_class = -1}));
    return trainer.evaluate(from_tensors(Tensor(Shape{3, 2}), Tensor(Shape{3}, std::move(labels))).batch(2)).at("loss");
  };

  // log(2) of equal logits, and 0.25 * (1 + 1).
  EXPECT_THAT(loss_of({0, 1, 1}), DoubleNear(std::log(2.0) + 0.5, 1e-6));
  EXPECT_THAT(loss_of({0, -1, -1}), DoubleNear(std::log(2.0) + 0.5, 1e-6));
}

TEST(IgnoredClasses, AreOfClassNumbersAlone) {
  EXPECT_THAT(sentence_thrown_by([] { BinaryCrossentropy({.ignore_class = 1}); }),
              HasSubstr("binary_crossentropy was given .ignore_class = 1"));
  EXPECT_THAT(sentence_thrown_by([] { CategoricalCrossentropy({.ignore_class = 1}); }),
              HasSubstr("use SparseCategoricalCrossentropy"));
  EXPECT_EQ(SparseCategoricalCrossentropy({.ignore_class = -1}).configuration(),
            R"({"kind":"sparse_categorical_crossentropy","from_logits":false,"ignore_class":-1})");
}

}  // namespace
}  // namespace holdfast
