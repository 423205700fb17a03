// Whole trainings of one process on a GPU, next to the CPU: what a Trainer offers besides fit() with Adam. Sums of
// products have other bits on a device, so losses are compared within 2 %. On the device itself, the same training has
// the same bits each time, whatever its steps were recorded as.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gpu/trainer/support/running_sum_kernel.h"
#include "holdfast/holdfast.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "unit/nn/support/function_layer.h"
#include "unit/nn/support/running_sum.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

const SparseCategoricalCrossentropy& crossentropy() {
  static const SparseCategoricalCrossentropy instance({.from_logits = true});
  return instance;
}

Outcome outcome_of_trainer(const Trainer& trainer, const FitResult& fit, Logs evaluation = {}) {
  return {trainer.weights_digest().hex(), trainer.step(), fit.results, std::move(evaluation), fit.history};
}

void expect_near(const Logs& actual, const Logs& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, value] : expected) {
    ASSERT_TRUE(actual.contains(name)) << name;
    // A sample whose class changes by rounding changes an accuracy by its share.
    const double tolerance = name.ends_with("loss") ? 0.02 * std::abs(value) : 0.05;
    EXPECT_NEAR(actual.at(name), value, tolerance) << name;
  }
}

class TrainerOnAGpu : public testing::Test {
 protected:
  using Train = std::function<Outcome(Replica&)>;

  void SetUp() override {
    if (!std::filesystem::exists("/dev/nvidiactl"))
      GTEST_SKIP() << "this machine has no CUDA device (no /dev/nvidiactl)";
  }

  static Outcome on(const std::string& device, const Train& train) {
    Replica replica = Replica::alone({.seed = 3, .shards = 4, .device = device});
    return train(replica);
  }

  // Trains on the device, twice, and on the CPU.
  static void expect_as_on_the_cpu(const Train& train) {
    const Outcome expected = on("cpu", train);
    const Outcome first = on("cuda:0", train);
    const Outcome second = on("cuda:0", train);

    expect_equal(first, second);
    EXPECT_EQ(first.step, expected.step);
    expect_near(first.results, expected.results);
    expect_near(first.evaluation, expected.evaluation);
    ASSERT_EQ(first.history.size(), expected.history.size());
    for (std::size_t i = 0; i < expected.history.size(); ++i) expect_near(first.history[i], expected.history[i]);
  }
};

TEST_F(TrainerOnAGpu, NeedsNoWatchdog) {
  expect_as_on_the_cpu([](Replica& replica) { return train_small(replica); });
}

TEST_F(TrainerOnAGpu, TakesEachOptimizer) {
  const std::vector<std::shared_ptr<const Optimizer>> optimizers = {
      std::make_shared<RMSprop>(RMSpropOptions{.momentum = 0.9F, .centered = true, .weight_decay = 0.1F}),
      std::make_shared<Adagrad>(AdagradOptions{.learning_rate = CosineDecay{0.1F, 10}}),
      std::make_shared<Adadelta>(AdadeltaOptions{.learning_rate = 1, .clip_norm = 0.05F}),
      std::make_shared<Adamax>(),
      std::make_shared<Nadam>(NadamOptions{.weight_decay = 0.1F}),
      std::make_shared<Lion>(LionOptions{.weight_decay = 0.1F}),
      std::make_shared<Lamb>(LambOptions{.weight_decay = 0.1F}),
      std::make_shared<Adafactor>(),
      std::make_shared<Adam>(AdamOptions{.amsgrad = true}),
      std::make_shared<Ftrl>(FtrlOptions{.learning_rate = 0.1F, .l1_regularization_strength = 0.01F}),
      std::make_shared<ScheduleFreeAdamW>(ScheduleFreeAdamWOptions{.warmup_steps = 3, .weight_decay = 0.1F}),
      std::make_shared<Muon>(MuonOptions{.learning_rate = 0.01F}),
      std::make_shared<Adam>(AdamOptions{.use_ema = true, .ema_momentum = 0.5F, .ema_overwrite_frequency = 3})};
  for (const auto& optimizer : optimizers) {
    SCOPED_TRACE(optimizer->configuration());
    expect_as_on_the_cpu([&](Replica& replica) { return train_with(replica, *optimizer); });
  }
  for (const auto& optimizer : clipping_optimizers()) {
    SCOPED_TRACE(optimizer->configuration());
    expect_as_on_the_cpu([&](Replica& replica) { return train_with(replica, *optimizer); });
  }
}

// A model whose first layer can be frozen, with penalties and a constraint.
Model layered_model() {
  const Value x = input({6, 6, 1});
  Value h = Flatten{}(x);
  h = Dense{12,
            {.activation = Activation::relu, .kernel_regularizer = Regularizer::l2(0.01F), .name = "base_dense"}}(h);
  h = LayerNormalization{{.name = "base_norm"}}(h);
  h = Dense{8, {.activation = Activation::tanh, .kernel_regularizer = Regularizer::l1(0.001F), .name = "middle"}}(h);
  return Model{x, Dense{3, {.kernel_regularizer = Regularizer::orthogonal(0.01F), .name = "head"}}(h)};
}

TEST_F(TrainerOnAGpu, FreezesLayersAndGoesOnWithOthers) {
  expect_as_on_the_cpu([](Replica& replica) {
    Trainer trainer(replica, layered_model().frozen("base_*"), Adam(0.01F), crossentropy());
    trainer.fit(small_data().shuffle().batch(10), {.epochs = 2});
    trainer.compile(layered_model(), Adagrad({.learning_rate = 0.01F}));
    const FitResult fit = trainer.fit(small_data().shuffle().batch(10), {.epochs = 2});
    return outcome_of_trainer(trainer, fit, trainer.evaluate(small_data(31).batch(8)));
  });
}

TEST_F(TrainerOnAGpu, KeepsFrozenWeightsBitForBit) {
  const TemporaryFolder folder;
  const std::string before = folder / "before.h5";
  const std::string after = folder / "after.h5";
  on("cuda:0", [&](Replica& replica) {
    Trainer trainer(replica, layered_model().frozen("base_*"), Adam(0.01F), crossentropy());
    trainer.save(before);
    const FitResult fit = trainer.fit(small_data().shuffle().batch(10), {.epochs = 1});
    trainer.save(after);
    return outcome_of_trainer(trainer, fit);
  });
  const Model first = load_model(before);
  const Model last = load_model(after);
  // Frozen weights are buffers: kernel and bias of 36 x 12, gamma and beta.
  EXPECT_EQ(first.buffers().element_count(), 36U * 12 + 12 + 2 * 12);
  EXPECT_TRUE(std::ranges::equal(first.buffer_values(), last.buffer_values()));
  EXPECT_FALSE(std::ranges::equal(first.parameter_values(), last.parameter_values()));
}

TEST_F(TrainerOnAGpu, HasRulesForSingleArrays) {
  expect_as_on_the_cpu([](Replica& replica) {
    const AdamW optimizer({.learning_rate = 0.01F,
                           .weight_decay = 0.1F,
                           .exclude_from_weight_decay = {"*/bias"},
                           .learning_rate_factors = {{"base_*", 0.1F}, {"middle/bias", 0}}});
    Trainer trainer(replica, layered_model(), optimizer, crossentropy());
    const FitResult fit = trainer.fit(small_data().shuffle().batch(10), {.epochs = 3});
    return outcome_of_trainer(trainer, fit);
  });
}

TEST_F(TrainerOnAGpu, TakesTheLearningRateOfACallback) {
  const CallbackHandle falling =
      LearningRateScheduler([](std::int64_t epoch, float rate) { return epoch == 1 ? rate / 10 : rate; });
  expect_as_on_the_cpu([&](Replica& replica) { return train_with(replica, Adam(0.01F), {falling}); });
}

TEST_F(TrainerOnAGpu, LoadsWeightsAndGoesOn) {
  const TemporaryFolder folder;
  const std::string path = folder / "weights.h5";
  on("cpu", [&](Replica& replica) {
    Trainer trainer(replica, layered_model(), Adam(0.01F), crossentropy());
    const FitResult fit = trainer.fit(small_data().batch(10), {.epochs = 3});
    trainer.save(path);
    return outcome_of_trainer(trainer, fit);
  });

  expect_as_on_the_cpu([&](Replica& replica) {
    Trainer trainer(replica, layered_model(), SGD(0.01F), crossentropy());
    trainer.fit(small_data().batch(10), {.epochs = 1});
    trainer.load_weights(path);
    const Logs loaded = trainer.evaluate(small_data(31).batch(8));
    const FitResult fit = trainer.fit(small_data().batch(10), {.epochs = 1});
    return outcome_of_trainer(trainer, fit, loaded);
  });
}

TEST_F(TrainerOnAGpu, TakesAverages) {
  expect_as_on_the_cpu([](Replica& replica) {
    Trainer trainer(replica, layered_model(), Adam({.learning_rate = 0.01F, .use_ema = true, .ema_momentum = 0.9F}),
                    crossentropy());
    trainer.fit(small_data().batch(10), {.epochs = 2});
    const Logs averaged = trainer.evaluate(small_data(31).batch(8), Weights::averaged);
    trainer.take_averages();
    EXPECT_EQ(trainer.evaluate(small_data(31).batch(8)), averaged);
    const FitResult fit = trainer.fit(small_data().batch(10), {.epochs = 1});
    return outcome_of_trainer(trainer, fit, averaged);
  });
}

std::function<Outcome(Replica&)> trained_on(std::int64_t batch, std::int64_t together) {
  return [=](Replica& replica) {
    Trainer trainer(replica, layered_model(), Adam(0.01F), crossentropy());
    const FitResult fit = trainer.fit(small_data(48).batch(batch), {.epochs = 2, .accumulate = together});
    return outcome_of_trainer(trainer, fit);
  };
}

TEST_F(TrainerOnAGpu, AccumulatesTheGradientsOfSeveralBatches) {
  expect_as_on_the_cpu(trained_on(4, 3));
  Replica eight = Replica::alone({.seed = 3, .shards = 8, .device = "cuda:0"});
  expect_equal(on("cuda:0", trained_on(6, 2)), trained_on(12, 1)(eight));
}

// Three batches are no power of two: a generation connects a second time, and the sums have slots of their own.
TEST_F(TrainerOnAGpu, AccumulatesThreeBatchesAsOneOfTripleSize) {
  Replica twelve = Replica::alone({.seed = 3, .shards = 12, .device = "cuda:0"});
  expect_equal(on("cuda:0", trained_on(4, 3)), trained_on(12, 1)(twelve));
}

// A block of Llama in small, whose scores are computed for seven positions at a time.
TEST_F(TrainerOnAGpu, LearnsALanguageWithTurnedQueriesAndScoresInTiles) {
  static constexpr std::int64_t kIds = 11, kLength = 8;
  const auto train = [](std::optional<std::int64_t> ignored) {
    return [=](Replica& replica) {
      std::vector<std::int32_t> ids, next;
      for (std::int32_t i = 0; i < 30 * kLength; ++i) {
        ids.push_back((i * i + i / 3) % kIds);
        next.push_back((i * i + i / 5) % kIds);
      }
      const Shape shape = {30, kLength};
      const Dataset data = from_tensors({{"ids", Tensor(shape, ids)}}, {{"next", Tensor(shape, next)}});
      const Value x = input({kLength}, {.dtype = DType::i32, .name = "ids"});
      Value h = Embedding{kIds, 16}(x);
      h = h + GroupQueryAttention{
                  8, 2, 1, {.use_bias = false, .use_causal_mask = true, .rotary = RotaryEmbeddingOptions{}}}(h, h);
      h = RMSNormalization{}(h);
      Trainer trainer(
          replica, Model{x, Dense{kIds, {.name = "next"}}(h)}, Adam(0.01F),
          SparseCategoricalCrossentropy{{.from_logits = true, .ignore_class = ignored, .positions_at_once = 7}},
          {metrics::Perplexity{{.from_logits = true, .ignore_class = ignored}}});
      const FitResult fit = trainer.fit(data.shuffle().batch(10), {.epochs = 3});
      return outcome_of_trainer(trainer, fit, trainer.evaluate(data.batch(8)));
    };
  };
  for (const std::optional<std::int64_t> ignored : {std::optional<std::int64_t>(), {1}})
    expect_as_on_the_cpu(train(ignored));
}

TEST_F(TrainerOnAGpu, SkipsAStepThatIsNotFinite) {
  const auto train = [](WhenNotFinite when) {
    return [when](Replica& replica) {
      Tensor features(Shape{40, 4});
      Tensor targets(Shape{40, 1});
      for (std::int64_t i = 0; i < 40; ++i) {
        Random random(5, Purpose::user, 0, static_cast<std::uint64_t>(i));
        for (float& value : features.sample(i)) value = random.normal();
        targets.values()[static_cast<std::size_t>(i)] = random.normal();
      }
      features.sample(13)[0] = std::numeric_limits<float>::infinity();
      Trainer trainer(replica, Sequential{Input{4}, Dense{5, {.activation = Activation::tanh}}, Dense{1}}, Adam(0.01F),
                      MeanSquaredError{});
      // inf - inf makes the NaN.
      features.sample(13)[1] = -std::numeric_limits<float>::infinity();
      const FitResult fit =
          trainer.fit(from_tensors(features, targets).batch(8), {.epochs = 2, .when_not_finite = when});
      return outcome_of_trainer(trainer, fit);
    };
  };
  for (const std::string device : {"cpu", "cuda:0"}) {
    EXPECT_EQ(code_thrown_by([&] { on(device, train(WhenNotFinite::stop)); }), ErrorCode::not_finite) << device;
  }
  EXPECT_EQ(sentence_thrown_by([&] { on("cuda:0", train(WhenNotFinite::stop)); }),
            sentence_thrown_by([&] { on("cpu", train(WhenNotFinite::stop)); }));
  expect_as_on_the_cpu(train(WhenNotFinite::skip_step));
}

TEST_F(TrainerOnAGpu, StopsWhereWeightsOverflow) {
  const auto train = [](Replica& replica) {
    Trainer trainer(replica, layered_model(), SGD(std::numeric_limits<float>::max()), crossentropy());
    const FitResult fit = trainer.fit(small_data().batch(10), {.epochs = 2, .when_not_finite = WhenNotFinite::stop});
    return outcome_of_trainer(trainer, fit);
  };
  for (const std::string device : {"cpu", "cuda:0"}) {
    EXPECT_EQ(code_thrown_by([&] { on(device, train); }), ErrorCode::not_finite) << device;
  }
}

TEST_F(TrainerOnAGpu, NamesTheSampleOfAWrongLabel) {
  const auto train = [](Replica& replica) {
    Tensor features(Shape{20, 4});
    std::vector<std::int32_t> labels(20, 1);
    labels[13] = 7;
    Trainer trainer(replica, Sequential{Input{4}, Dense{3}}, SGD(0.1F), crossentropy());
    const Dataset data =
        from_tensors({{"x", std::move(features)}}, {{"y", Tensor(Shape{20}, std::move(labels))}}).batch(10);
    return outcome_of_trainer(trainer, trainer.fit(data, {.epochs = 1}));
  };
  const std::string on_the_gpu = sentence_thrown_by([&] { on("cuda:0", train); });

  EXPECT_EQ(on_the_gpu, sentence_thrown_by([&] { on("cpu", train); }));
  EXPECT_THAT(on_the_gpu, HasSubstr("7"));
}

// Two outputs: classes at positions, of which some are masked or ignored, and one value a sample.
Outcome train_two_outputs(Replica& replica) {
  constexpr std::int64_t kSamples = 45;
  constexpr std::int64_t kPositions = 4;
  std::vector<float> x;
  std::vector<std::int32_t> words;
  std::vector<float> values;
  std::vector<float> mask;
  std::vector<float> weights;
  for (std::int64_t i = 0; i < kSamples; ++i) {
    Random random(11, Purpose::user, 0, static_cast<std::uint64_t>(i));
    for (std::int64_t position = 0; position < kPositions; ++position) {
      x.push_back(random.normal());
      x.push_back(random.normal());
      words.push_back(static_cast<std::int32_t>(random.below(4)));
      mask.push_back(position <= i % kPositions ? 1 : 0);
    }
    values.push_back(random.normal());
    weights.push_back(i % 5 == 0 ? 0 : 0.5F);
  }
  const Value in = input({kPositions, 2});
  const Value h = Dense{6, {.activation = Activation::gelu}}(in);
  const Model model{{in}, {Dense{4, {.name = "words"}}(h), Dense{1, {.name = "value"}}(Flatten{}(h))}};
  const SparseCategoricalCrossentropy ignoring({.from_logits = true, .ignore_class = 3});
  Trainer trainer(replica, model, Adam(0.02F), {ignoring, {MeanSquaredError{}, 0.5F}},
                  {{SparseCategoricalAccuracy{}, "words"}});
  const Dataset data = from_tensors({{"x", Tensor(Shape{kSamples, kPositions, 2}, std::move(x))}},
                                    {{"words", Tensor(Shape{kSamples, kPositions}, std::move(words))},
                                     {"value", Tensor(Shape{kSamples, 1}, std::move(values))}},
                                    {{"words", Tensor(Shape{kSamples, kPositions}, std::move(mask))},
                                     {"value", Tensor(Shape{kSamples}, std::move(weights))}});
  const FitResult fit = trainer.fit(data.shuffle().batch(10), {.epochs = 3});
  return outcome_of_trainer(trainer, fit, trainer.evaluate(data.batch(7)));
}

TEST_F(TrainerOnAGpu, WeighsEachOutputAndIgnoresAClass) {
  expect_as_on_the_cpu(train_two_outputs);
}

TEST_F(TrainerOnAGpu, PredictsLikeTheCpu) {
  std::vector<float> outputs[2];
  const Tensor features = [] {
    Tensor drawn(Shape{37, 6, 6, 1});
    for (std::int64_t i = 0; i < 37; ++i) {
      Random random(21, Purpose::user, 0, static_cast<std::uint64_t>(i));
      for (float& value : drawn.sample(i)) value = random.normal();
    }
    return drawn;
  }();
  for (const int which : {0, 1}) {
    on(which == 0 ? "cpu" : "cuda:0", [&](Replica& replica) {
      Trainer trainer(replica, layered_model(), SGD(0.01F), crossentropy());
      const FitResult fit = trainer.fit(small_data().batch(10), {.epochs = 1});
      const Tensor predicted = trainer.predict(features, 8);
      outputs[which].assign(predicted.values().begin(), predicted.values().end());
      return outcome_of_trainer(trainer, fit);
    });
  }
  ASSERT_EQ(outputs[0].size(), 37U * 3);
  ASSERT_EQ(outputs[0].size(), outputs[1].size());
  for (std::size_t i = 0; i < outputs[0].size(); ++i) EXPECT_NEAR(outputs[1][i], outputs[0][i], 1e-3F) << i;
}

// RunningSum with a kernel for devices.
class RunningSumWithAKernel final : public CustomOperation {
 public:
  explicit RunningSumWithAKernel(bool is_reversed) : sum_(is_reversed), is_reversed_(is_reversed) {}
  std::string name() const override { return "test.running_sum_with_a_kernel"; }
  std::vector<ValueSpec> infer(std::span<const ValueSpec> inputs) const override { return sum_.infer(inputs); }
  void run(const OperationArrays& arrays) const override { sum_.run(arrays); }
  bool runs_on_devices() const override { return true; }
  void queue_on_device(const OperationArrays& arrays, void* stream) const override {
    const std::span<const float> x = arrays.inputs[0].floats();
    const long long length = arrays.inputs[0].spec().shape.extents().back();
    const auto rows = static_cast<long long>(x.size()) / length;
    EXPECT_EQ(queue_running_sum(x.data(), arrays.outputs[0].floats().data(), rows, length, is_reversed_, stream), 0);
  }
  std::vector<std::optional<Value>> gradient(const OperationGradient& at) const override {
    return {apply_custom(std::make_shared<const RunningSumWithAKernel>(!is_reversed_), {*at.output_gradients[0]})[0]};
  }

 private:
  const RunningSum sum_;
  const bool is_reversed_;
};

TEST_F(TrainerOnAGpu, RunsAKernelOfTheApplication) {
  expect_as_on_the_cpu([](Replica& replica) {
    const FunctionLayer sum(
        [](const Value& x) { return apply_custom(std::make_shared<const RunningSumWithAKernel>(false), {x})[0]; });
    const Sequential model{Input{6, 6, 1}, Flatten{}, Dense{12, {.activation = Activation::tanh}}, sum, Dense{3}};
    Trainer trainer(replica, model, Adam(0.01F), crossentropy());
    const FitResult fit = trainer.fit(small_data().shuffle().batch(10), {.epochs = 2});
    return outcome_of_trainer(trainer, fit);
  });
}

}  // namespace
}  // namespace holdfast
