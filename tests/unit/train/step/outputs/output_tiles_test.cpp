// Losses with positions_at_once: gradients against central differences of the loss in double, results and weights
// against a training that computes all positions at once, and bits where both compute the same.

#include "train/step/outputs/output_tiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "holdfast/base/error.h"
#include "support/thread_replica.h"
#include "support/thrown.h"
#include "unit/train/support/small_training.h"

// Sources are compiled together, and others have helpers of these names.
namespace holdfast::in_tiles {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kSamples = 6;
constexpr std::int64_t kPositions = 5;
constexpr std::int64_t kWidth = 3;
constexpr std::int64_t kClasses = 7;

std::vector<float> drawn(std::size_t count, std::uint64_t sequence) {
  Random random(21, Purpose::user, sequence, 0);
  std::vector<float> numbers(count);
  for (float& number : numbers) number = random.normal();
  return numbers;
}

struct Positions {
  std::vector<float> x = drawn(kSamples * kPositions * kWidth, 1);
  std::vector<std::int32_t> ids;      // [samples, positions]
  std::vector<std::int32_t> targets;  // [samples, positions]
  std::vector<float> mask;            // [samples, positions]
  std::vector<float> weights;         // [samples]

  Positions() {
    Random random(22, Purpose::user, 0, 0);
    for (std::int64_t i = 0; i < kSamples * kPositions; ++i) {
      ids.push_back(static_cast<std::int32_t>(random.below(kClasses)));
      targets.push_back(static_cast<std::int32_t>(random.below(kClasses)));
      mask.push_back(i % 4 == 1 ? 0 : 0.5F + static_cast<float>(i % 3));
    }
    for (std::int64_t i = 0; i < kSamples; ++i) weights.push_back(i == 2 ? 0 : 0.25F + static_cast<float>(i));
  }
};

enum class Weighting { none, of_samples, of_positions };

Dataset dataset(const NamedTensor& inputs, const Positions& data, Weighting weighting) {
  const NamedTensor targets{"y", Tensor(Shape{kSamples, kPositions}, data.targets)};
  if (weighting == Weighting::of_samples) {
    return from_tensors({inputs}, {targets}, Tensor(Shape{kSamples}, data.weights));
  }
  if (weighting == Weighting::of_positions) {
    return from_tensors({inputs}, {targets}, Tensor(Shape{kSamples, kPositions}, data.mask));
  }
  return from_tensors({inputs}, {targets});
}

Dataset vectors(const Positions& data, Weighting weighting) {
  return dataset({"x", Tensor(Shape{kSamples, kPositions, kWidth}, data.x)}, data, weighting);
}

Dataset ids(const Positions& data, Weighting weighting = Weighting::none) {
  return dataset({"ids", Tensor(Shape{kSamples, kPositions}, data.ids)}, data, weighting);
}

SparseCategoricalCrossentropy loss(std::int64_t at_once, std::optional<std::int64_t> ignored = {},
                                   float smoothing = 0) {
  return SparseCategoricalCrossentropy{
      {.from_logits = true, .label_smoothing = smoothing, .ignore_class = ignored, .positions_at_once = at_once}};
}

// Loss and gradient of the product alone, in double.
class Reference {
 public:
  Reference(const Positions& data, Weighting weighting, std::optional<std::int64_t> ignored, double smoothing = 0)
      : data_(data), weighting_(weighting), ignored_(ignored), smoothing_(smoothing) {}

  // `weights` has the kernel [width, classes], then the bias [classes].
  double loss(const std::vector<double>& weights) const {
    double sum = 0, divisor = 0;
    for (std::size_t row = 0; row < kSamples * kPositions; ++row) {
      const double weight = weight_of(row);
      sum += weight == 0 ? 0 : weight * loss_of_row(weights, row);
      divisor += weight;
    }
    return sum / divisor;
  }

  double slope(std::vector<double> weights, std::size_t element) const {
    // The error of the difference is about 1e-10, that of rounding 1e-11.
    constexpr double kStep = 1e-5;
    weights[element] += kStep;
    const double above = loss(weights);
    weights[element] -= 2 * kStep;
    return (above - loss(weights)) / (2 * kStep);
  }

 private:
  double weight_of(std::size_t row) const {
    if (ignored_ && data_.targets[row] == *ignored_) return 0;
    if (weighting_ == Weighting::of_positions) return static_cast<double>(data_.mask[row]);
    return weighting_ == Weighting::of_samples ? static_cast<double>(data_.weights[row / kPositions]) : 1;
  }

  double loss_of_row(const std::vector<double>& weights, std::size_t row) const {
    double sum = 0, of_target = 0, of_all = 0;
    for (std::size_t c = 0; c < kClasses; ++c) {
      double score = weights[kWidth * kClasses + c];
      for (std::size_t i = 0; i < kWidth; ++i) {
        score += static_cast<double>(data_.x[row * kWidth + i]) * weights[i * kClasses + c];
      }
      sum += std::exp(score);
      of_all += score;
      if (static_cast<std::int32_t>(c) == data_.targets[row]) of_target = score;
    }
    return std::log(sum) - (1 - smoothing_) * of_target - smoothing_ * of_all / kClasses;
  }

  const Positions& data_;
  const Weighting weighting_;
  const std::optional<std::int64_t> ignored_;
  const double smoothing_;
};

// All arrays, without the padding of the arena.
std::vector<float> weights_of(const Model& model) {
  std::vector<float> all;
  for (std::size_t entry = 0; entry < model.parameters().entries().size(); ++entry) {
    const auto array = model.parameters().view(model.parameter_values(), entry);
    all.insert(all.end(), array.begin(), array.end());
  }
  return all;
}

void set_drawn_weights(Model& model) {
  std::vector<float> arena(model.parameters().float_count());
  for (std::size_t entry = 0; entry < model.parameters().entries().size(); ++entry) {
    const std::span<float> array = model.parameters().view(std::span(arena), entry);
    std::ranges::copy(drawn(array.size(), 5 + entry), array.begin());
  }
  model.set_weights(std::move(arena), {});
}

// 0 positions at once: all of a shard, without tiles.
void expect_gradients_of_reference(Weighting weighting, std::optional<std::int64_t> ignored, float smoothing = 0) {
  const Positions data;
  const Reference reference(data, weighting, ignored, static_cast<double>(smoothing));
  for (const std::int64_t at_once : {0, 1, 4, 5, 7, 100}) {
    SCOPED_TRACE(testing::Message() << at_once << " positions at once");
    Model model = Sequential{Input{kPositions, kWidth}, Dense{kClasses}};
    set_drawn_weights(model);
    const std::vector<float> before = weights_of(model);
    // Two shards, of four and of two samples.
    train_on_threads({.replicas = 1, .shards = 2}, [&](Replica& replica) {
      Trainer trainer(replica, model, SGD(1.0F), loss(at_once, ignored, smoothing));
      const Logs results = trainer.fit(vectors(data, weighting).batch(kSamples)).results;
      const std::vector<float> after = weights_of(model);
      const std::vector<double> at(before.begin(), before.end());
      // Rounding of sums of some f32 numbers below 10.
      EXPECT_NEAR(results.at("loss"), reference.loss(at), 1e-6);
      ASSERT_EQ(after.size(), kWidth * kClasses + kClasses);
      for (std::size_t i = 0; i < after.size(); ++i) {
        EXPECT_NEAR(static_cast<double>(before[i]) - static_cast<double>(after[i]), reference.slope(at, i), 2e-6) << i;
      }
    });
  }
}

TEST(OutputTiles, HaveTheGradientsOfFiniteDifferences) {
  expect_gradients_of_reference(Weighting::none, {});
}

TEST(OutputTiles, HaveTheGradientsOfFiniteDifferencesWithWeights) {
  expect_gradients_of_reference(Weighting::of_samples, {});
  expect_gradients_of_reference(Weighting::of_positions, {});
}

TEST(OutputTiles, HaveTheGradientsOfFiniteDifferencesWithAnIgnoredClass) {
  expect_gradients_of_reference(Weighting::none, 2);
  expect_gradients_of_reference(Weighting::of_samples, 2);
  expect_gradients_of_reference(Weighting::of_positions, 2);
}

TEST(OutputTiles, HaveTheGradientsOfFiniteDifferencesWithSmoothedLabels) {
  expect_gradients_of_reference(Weighting::none, {}, 0.25F);
  expect_gradients_of_reference(Weighting::of_samples, 2, 0.25F);
  expect_gradients_of_reference(Weighting::of_positions, 2, 0.25F);
}

struct LanguageOptions {
  bool is_tied = true;
  bool recomputes = false;
};

// What is before the product has weights of its own, random draws, and reads the table, too.
Model language_model(const LanguageOptions& options = {}) {
  const ReversibleEmbedding words{kClasses, kWidth, {.initializer = Initializer::normal(0.5F), .name = "words"}};
  const Value in = input({kPositions}, {.dtype = DType::i32, .name = "ids"});
  return recompute(options.recomputes, [&] {
    const Value hidden =
        LayerNormalization{}(Dropout{0.2F}(Dense{kWidth, {.activation = Activation::tanh}}(words(in))));
    if (options.is_tied) return Model(in, words.reverse(hidden));
    return Model(in, Dense{kClasses, {.name = "scores"}}(hidden));
  });
}

std::vector<MetricHandle> metrics_of_positions() {
  return {SparseCategoricalAccuracy{},
          metrics::Perplexity{{.from_logits = true}},
          {SparseCategoricalAccuracy{{.name = "of_all"}}, "", MetricWeights::ignored}};
}

Outcome train(Replica& replica, const Model& model, const Dataset& data, const Loss& loss) {
  Trainer trainer(replica, model, SGD(0.5F), loss, metrics_of_positions());
  // Batches of 4 and of 2 samples.
  const FitResult fit = trainer.fit(data.batch(4), {.epochs = 3});
  return {trainer.weights_digest().hex(), trainer.step(), fit.results, trainer.evaluate(data.batch(4)), fit.history};
}

// A model keeps the weights that it was trained to, so each training makes its own.
using MakeModel = std::function<Model()>;

Outcome train_alone(const MakeModel& make_model, const Dataset& data, const Loss& loss) {
  return outcomes_of({.replicas = 1, .shards = 2},
                     [&](Replica& replica) { return train(replica, make_model(), data, loss); })[0];
}

// The same training with all positions at once.
void expect_results_of_whole_outputs(const MakeModel& model, Weighting weighting, std::optional<std::int64_t> ignored) {
  const Dataset data = ids(Positions(), weighting);
  const Outcome whole = train_alone(model, data, loss(0, ignored));
  for (const std::int64_t at_once : {1, 3, 8}) {
    SCOPED_TRACE(testing::Message() << at_once << " positions at once");
    const Outcome tiles = train_alone(model, data, loss(at_once, ignored));
    for (const auto& [name, value] : whole.results) EXPECT_NEAR(tiles.results.at(name), value, 1e-5 * value) << name;
    ASSERT_EQ(tiles.evaluation.size(), whole.evaluation.size());
    // Six updates of sums that are rounded to a few parts in 10^7.
    for (const auto& [name, value] : whole.evaluation) {
      EXPECT_NEAR(tiles.evaluation.at(name), value, 1e-5 * value) << name;
    }
  }
}

TEST(OutputTiles, HaveTheResultsOfWholeOutputs) {
  for (const bool is_tied : {true, false}) {
    const auto model = [&] { return language_model({.is_tied = is_tied}); };
    expect_results_of_whole_outputs(model, Weighting::none, {});
    expect_results_of_whole_outputs(model, Weighting::of_samples, {});
    expect_results_of_whole_outputs(model, Weighting::of_positions, {});
    expect_results_of_whole_outputs(model, Weighting::of_samples, 3);
  }
}

TEST(OutputTiles, HaveTheResultsOfWholeOutputsWhereLayersAreFrozen) {
  const auto untied = [] { return language_model({.is_tied = false}); };
  expect_results_of_whole_outputs([&] { return untied().frozen("scores"); }, Weighting::none, {});
  expect_results_of_whole_outputs([&] { return untied().frozen("words").frozen("dense"); }, Weighting::none, {});
}

// Gradients and losses are added up in the same order. Perplexity takes the mean of each sample first where it sees
// samples whole, so its last bits may differ.
TEST(OutputTiles, HaveTheBitsOfWholeOutputsWhereThereIsOneTile) {
  for (const bool is_tied : {true, false}) {
    const auto model = [&] { return language_model({.is_tied = is_tied}); };
    for (const Weighting weighting : {Weighting::none, Weighting::of_positions}) {
      const Dataset data = ids(Positions(), weighting);

      const Outcome tile = train_alone(model, data, loss(1000)), whole = train_alone(model, data, loss(0));

      EXPECT_EQ(tile.digest, whole.digest);
      EXPECT_EQ(tile.results.at("loss"), whole.results.at("loss"));
    }
  }
}

TEST(OutputTiles, GiveTheSameBitsOnAnyNumberOfReplicas) {
  for (const Weighting weighting : {Weighting::none, Weighting::of_samples, Weighting::of_positions}) {
    const Dataset data = ids(Positions(), weighting);
    for (const std::optional<std::int64_t> ignored : {std::optional<std::int64_t>(), {2}}) {
      const auto trained = [&](int replicas) {
        return outcomes_of({.replicas = replicas},
                           [&](Replica& replica) { return train(replica, language_model(), data, loss(3, ignored)); });
      };
      const Outcome alone = trained(1).front();
      for (const int replicas : {2, 4}) {
        for (const Outcome& outcome : trained(replicas)) expect_equal(outcome, alone);
      }
    }
  }
}

TEST(OutputTiles, GiveTheSameBitsWhereTheModelIsRecomputed) {
  for (const bool is_tied : {true, false}) {
    const auto trained = [&](bool recomputes) {
      const auto model = [&] { return language_model({.is_tied = is_tied, .recomputes = recomputes}); };
      return train_alone(model, ids(Positions()), loss(4));
    };

    expect_equal(trained(true), trained(false));
  }
}

TEST(OutputTiles, HaveTheResultsOfWholeOutputsForSamplesWithoutPositions) {
  const Positions data;
  const auto trained = [&](std::int64_t at_once) {
    const std::vector<float> x(data.x.begin(), data.x.begin() + kSamples * kWidth);
    const std::vector<std::int32_t> y(data.targets.begin(), data.targets.begin() + kSamples);
    const Dataset samples = from_tensors({{"x", Tensor(Shape{kSamples, kWidth}, x)}},
                                         {{"y", Tensor(Shape{kSamples}, y)}}, Tensor(Shape{kSamples}, data.weights));
    return train_alone([] { return Sequential{Input{kWidth}, Dense{kClasses}}; }, samples, loss(at_once));
  };
  const Outcome whole = trained(0);

  const Outcome tiles = trained(2);

  for (const auto& [name, value] : whole.evaluation) EXPECT_NEAR(tiles.evaluation.at(name), value, 1e-5 * value);
}

TEST(OutputTiles, LeavePredictionsWhole) {
  const Positions data;
  const auto predicted = [&](std::int64_t at_once) {
    Replica replica = Replica::alone();
    Trainer trainer(replica, language_model(), SGD(0.5F), loss(at_once));
    trainer.fit(ids(data).batch(kSamples));
    trainer.evaluate(ids(data).batch(kSamples));
    return trainer.predict(ids(data).batch(kSamples));
  };

  const Tensor scores = predicted(1000);

  EXPECT_EQ(scores.shape(), (Shape{kSamples, kPositions, kClasses}));
  EXPECT_TRUE(std::ranges::equal(scores.values(), predicted(0).values()));
}

TEST(OutputTiles, FollowACompileThatFreezesTheProduct) {
  const Positions data;
  Replica replica = Replica::alone();
  Model model = language_model({.is_tied = false});
  Trainer trainer(replica, model, SGD(0.5F), loss(4));
  trainer.fit(ids(data).batch(kSamples));
  const std::vector<float> before = weights_of(model);
  Model frozen = model.frozen("scores");

  trainer.compile(frozen, SGD(0.5F));
  trainer.fit(ids(data).batch(kSamples));

  // The kernel and the bias of the product were the last parameters.
  const std::vector<float> scores(before.end() - kWidth * kClasses - kClasses, before.end());
  std::vector<float> after;
  for (std::size_t entry = 0; entry < frozen.buffers().entries().size(); ++entry) {
    const auto array = frozen.buffers().view(frozen.buffer_values(), entry);
    after.insert(after.end(), array.begin(), array.end());
  }
  EXPECT_EQ(after, scores);
  EXPECT_FALSE(std::ranges::equal(weights_of(frozen), std::span(before).first(weights_of(frozen).size())));
}

TEST(OutputTiles, NameTheSampleAndThePositionOfAWrongLabel) {
  Positions data;
  data.targets[4 * kPositions + 3] = kClasses;
  const std::string sentence = sentence_thrown_by([&] {
    Replica replica = Replica::alone();
    Trainer(replica, language_model(), SGD(0.5F), loss(4)).fit(ids(data).batch(kSamples));
  });

  EXPECT_THAT(sentence, HasSubstr("sample 4 of 6"));
  EXPECT_THAT(sentence, HasSubstr("at position 3 has the class label 7"));
}

std::string sentence_of_trainer(const Model& model, std::vector<LossHandle> losses,
                                std::vector<MetricHandle> metrics = {}) {
  return sentence_thrown_by([&] {
    Replica replica = Replica::alone();
    const Trainer trainer(replica, model, SGD(0.5F), std::move(losses), std::move(metrics));
  });
}

TEST(OutputTiles, NeedAProductAtTheEndOfTheModel) {
  const Value in = input({kPositions}, {.dtype = DType::i32});
  const ReversibleEmbedding capped{kClasses, kWidth, {.logit_soft_cap = 3.0F}};
  EXPECT_THAT(sentence_of_trainer(Model(in, capped.reverse(capped(in))), {loss(4)}),
              HasSubstr("this one ends with the operation"));
  const Value x = input({kPositions, kWidth});
  EXPECT_THAT(sentence_of_trainer(Model(x, relu(Dense{kClasses}(x))), {loss(4)}), HasSubstr("ends with"));
  const Value scores = Dense{kClasses}(x);
  EXPECT_THAT(sentence_of_trainer(Model({x}, {scores, Dense{2}(x)}), {MeanSquaredError{}, loss(4)}),
              HasSubstr("2 outputs"));
}

TEST(OutputTiles, RefuseMetricsThatSeeASampleWhole) {
  const MetricFunction mean_score("mean_score", [](const Value& outputs, const Value&) { return outputs; });

  EXPECT_THAT(sentence_of_trainer(language_model(), {loss(4)}, {mean_score}),
              HasSubstr("metric \"mean_score\" sees the outputs of a sample whole"));
}

TEST(PositionsAtOnce, AreOfClassNumbersAndLogits) {
  EXPECT_THAT(sentence_thrown_by([] { SparseCategoricalCrossentropy{{.positions_at_once = 4}}; }),
              HasSubstr("without from_logits"));
  EXPECT_THAT(sentence_thrown_by([] { loss(-1); }), HasSubstr(".positions_at_once = -1"));
  EXPECT_THAT(sentence_thrown_by([] { CategoricalCrossentropy{{.from_logits = true, .positions_at_once = 4}}; }),
              HasSubstr("use SparseCategoricalCrossentropy"));
  EXPECT_THAT(sentence_thrown_by([] { BinaryCrossentropy{{.from_logits = true, .positions_at_once = 4}}; }),
              HasSubstr("use SparseCategoricalCrossentropy"));
}

TEST(PositionsAtOnce, ArePartOfTheConfiguration) {
  EXPECT_EQ(loss(0).configuration(), R"({"kind":"sparse_categorical_crossentropy","from_logits":true})");
  EXPECT_EQ(loss(64).configuration(),
            R"({"kind":"sparse_categorical_crossentropy","from_logits":true,"positions_at_once":64})");
}

}  // namespace
}  // namespace holdfast::in_tiles
