// Moving averages of the weights in a training: against Keras in float64 (scripts/tests/optimizer_cases.py), on several
// replicas, and after failures.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "holdfast/holdfast.h"
#include "support/folders.h"
#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "support/thrown.h"
#include "train/state/resume.h"
#include "unit/optim/support/optimizer_of_case.h"
#include "unit/optim/support/training_run.h"
#include "unit/train/support/played_callbacks.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

// A kernel of 6 weights whose gradient is the sample.
Model weights_of_case(const Json& one) {
  Model model = Sequential{Input{6}, Dense{1, {.use_bias = false}}};
  auto parameters = one["parameters"].get<std::vector<float>>();
  parameters.resize(model.parameters().float_count());
  model.set_weights(parameters, {});
  return model;
}

Dataset gradients_of_case(const Json& one) {
  std::vector<float> samples;
  for (const Json& gradient : one["gradients"]) {
    for (const Json& element : gradient) samples.push_back(element.get<float>());
  }
  const auto count = static_cast<std::int64_t>(one["gradients"].size());
  return from_tensors(Tensor(Shape{count, 6}, samples), Tensor(Shape{count, 1})).batch(1);
}

// As in KerasCases: an average is of such parameters, and rounded twice itself.
void expect_close(std::span<const float> found, const Json& expected, const std::string& what) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i].get<double>(), 150 * kHalfUlp) << what << ", " << i;
  }
}

TEST(WeightAverages, AreThoseOfKerasForAllOptimizers) {
  std::ifstream file(source_folder() + "/tests/unit/train/reference/averages.json");
  const Json cases = Json::parse(file);
  ASSERT_EQ(cases.size(), 14U);
  const LossFunction loss("output",
                          [](const Value& outputs, const Value& targets) { return outputs + 0.0F * targets; });
  for (const Json& one : cases) {
    const auto optimizer = optimizer_of_case(one);
    SCOPED_TRACE(optimizer->configuration());
    const Model model = weights_of_case(one);
    Replica alone = Replica::alone();
    Trainer trainer(alone, model, *optimizer, loss);

    trainer.fit(gradients_of_case(one));

    expect_close(model.parameter_values(), one["expected"], "parameters");
    expect_close(trainer.averaged_model().parameter_values(), one["slots"]["moving_average"], "averages");

    // The weights of Keras's model after fit().
    trainer.take_averages();
    expect_close(model.parameter_values(), one["slots"]["moving_average"], "parameters after take_averages()");
  }
}

AdamOptions averaging_options() {
  return {.learning_rate = 0.01F, .use_ema = true, .ema_momentum = 0.75F};
}

Dataset averaged_batches() {
  return small_data().batch(10);
}

const SparseCategoricalCrossentropy& loss_of_averages() {
  static const SparseCategoricalCrossentropy instance({.from_logits = true});
  return instance;
}

struct Averaged {
  std::string digest;
  std::vector<Logs> history;
  Logs evaluation;
  std::vector<float> averages;
};

// Each of two epochs ends with a savepoint, and is validated with the averages.
Averaged train_averages(const ThreadRun& run, std::int64_t fail_at = -1) {
  Averaged averaged;
  train_on_threads(run, [&](Replica& replica) {
    const Model model = small_model();
    Trainer trainer(replica, model, Adam(averaging_options()), loss_of_averages());
    const FitResult fit = trainer.fit(small_data().shuffle().batch(10),
                                      {.epochs = 2,
                                       .validation = averaged_batches(),
                                       .accept_shared_samples = true,
                                       .callbacks = {SwapEMAWeights(), ModelCheckpoint(), FailAt(fail_at)}});
    const Logs evaluation = trainer.evaluate(averaged_batches(), Weights::averaged);
    if (!replica.is_primary()) return;
    averaged.digest = trainer.weights_digest().hex();
    averaged.history = fit.history;
    averaged.evaluation = evaluation;
    averaged.averages.assign(model.parameter_values().begin(), model.parameter_values().end());
  });
  return averaged;
}

TEST(SwapEMAWeights, ValidatesTheAveragesAndLeavesThemToTheModel) {
  const TemporaryFolder folder;
  const Averaged averaged = train_averages({.run_directory = folder.path()});

  EXPECT_EQ(averaged.history.back().at("val_loss"), averaged.evaluation.at("loss"));
  const std::string last = folder / savepoint_name(12);
  const Model model = load_model(last, Weights::averaged);
  const Model trained = load_model(last);
  EXPECT_FALSE(std::ranges::equal(trained.parameter_values(), model.parameter_values()));
  EXPECT_TRUE(std::ranges::equal(trained.buffer_values(), model.buffer_values()));
  EXPECT_TRUE(std::ranges::equal(averaged.averages, model.parameter_values()));
}

TEST(SwapEMAWeights, LeavesTheTrainingAsItIs) {
  const TemporaryFolder folder;
  const auto train = [&](const std::vector<CallbackHandle>& callbacks) {
    Replica alone = Replica::alone();
    Trainer trainer(alone, small_model(), Adam(averaging_options()), loss_of_averages());
    trainer.fit(averaged_batches(),
                {.epochs = 2, .validation = averaged_batches(), .accept_shared_samples = true, .callbacks = callbacks});
    return trainer.weights_digest().hex();
  };

  EXPECT_EQ(train({SwapEMAWeights()}), train({}));
}

TEST(SwapEMAWeights, HasTheSameBitsOnAnyNumberOfReplicasAndAfterFailures) {
  const TemporaryFolder plain;
  const Averaged expected = train_averages({.run_directory = plain.path()});
  const TemporaryFolder failed;
  // In the second epoch, so that the new start goes on from the state after a validation of averages.
  EXPECT_ANY_THROW(train_averages({.replicas = 2, .run_directory = failed.path()}, 8));

  for (const Averaged& again : {train_averages({.replicas = 2, .run_directory = failed.path()}),
                                train_averages({.replicas = 3, .run_directory = TemporaryFolder().path()})}) {
    EXPECT_EQ(again.digest, expected.digest);
    EXPECT_EQ(again.history, expected.history);
    EXPECT_EQ(again.evaluation, expected.evaluation);
    EXPECT_EQ(again.averages, expected.averages);
  }
}

// The file held the trained weights, and its name the value of the averages.
TEST(SwapEMAWeights, HasFilesOfWeightsAloneHoldTheAveragesThatWereValidated) {
  const TemporaryFolder folder;
  const ModelCheckpointOptions of_weights{
      .directory = folder / "weights", .best_by = "val_loss", .file_name = "{epoch}.h5", .weights_only = true};
  Replica alone = Replica::alone();
  Trainer trainer(alone, small_model(), Adam(averaging_options()), loss_of_averages());
  const FitResult fit = trainer.fit(averaged_batches(), {.validation = averaged_batches(),
                                                         .accept_shared_samples = true,
                                                         .callbacks = {ModelCheckpoint(of_weights), SwapEMAWeights()}});

  const Model averaged = load_model(folder / "weights/1.h5");
  EXPECT_TRUE(std::ranges::equal(averaged.parameter_values(), trainer.averaged_model().parameter_values()));
  Replica beside = Replica::alone();
  Trainer other(beside, averaged, SGD(0.01F), loss_of_averages());
  EXPECT_EQ(other.evaluate(averaged_batches()).at("loss"), fit.results.at("val_loss"));
}

TEST(WeightAverages, AreNotInFilesOfWeightsAloneThatNobodyValidatedThemFor) {
  const TemporaryFolder folder;
  Replica alone = Replica::alone();
  const Model model = small_model();
  Trainer trainer(alone, model, Adam(averaging_options()), loss_of_averages());
  trainer.fit(averaged_batches(),
              {.callbacks = {ModelCheckpoint(
                   {.directory = folder / "weights", .file_name = "{epoch}.h5", .weights_only = true})}});

  EXPECT_TRUE(std::ranges::equal(load_model(folder / "weights/1.h5").parameter_values(), model.parameter_values()));
}

// Keras's model has the averages after fit(), and its evaluate() and predict() read them.
TEST(SwapEMAWeights, HasEvaluateAndPredictReadTheAveragesUnlessTheyAreTold) {
  Replica alone = Replica::alone();
  Trainer trainer(alone, small_model(), Adam(averaging_options()), loss_of_averages());
  const Tensor inputs = Tensor(Shape{3, 6, 6, 1}, std::vector<float>(3 * 36, 0.5F));
  const Dataset data = averaged_batches();
  EXPECT_EQ(trainer.fit(data).weights, Weights::trained);
  EXPECT_EQ(trainer.evaluate(data), trainer.evaluate(data, Weights::trained));

  const FitResult fit = trainer.fit(data, {.callbacks = {SwapEMAWeights()}});

  EXPECT_EQ(fit.weights, Weights::averaged);
  EXPECT_EQ(trainer.evaluate(data), trainer.evaluate(data, Weights::averaged));
  EXPECT_NE(trainer.evaluate(data), trainer.evaluate(data, Weights::trained));
  const auto same = [](const Tensor& a, const Tensor& b) { return std::ranges::equal(a.values(), b.values()); };
  EXPECT_TRUE(same(trainer.predict(inputs), trainer.averaged_model().predict(inputs)));
  EXPECT_FALSE(same(trainer.predict(inputs), trainer.predict(inputs, 256, Weights::trained)));
  EXPECT_TRUE(same(trainer.predict(data), trainer.predict(data, Weights::averaged)));
  EXPECT_FALSE(same(trainer.predict(data), trainer.predict(data, Weights::trained)));

  trainer.fit(data);
  EXPECT_EQ(trainer.evaluate(data), trainer.evaluate(data, Weights::trained));
}

TEST(WeightAverages, ArePredictedBySeveralReplicasWithTheBitsOfOne) {
  const auto predict = [](int replicas) {
    std::vector<std::vector<float>> outputs(static_cast<std::size_t>(replicas));
    train_on_threads({.replicas = replicas, .run_directory = TemporaryFolder().path()}, [&](Replica& replica) {
      Trainer trainer(replica, small_model(), Adam(averaging_options()), loss_of_averages());
      trainer.fit(averaged_batches());
      const Tensor predicted = trainer.predict(averaged_batches(), Weights::averaged);
      const Tensor trained = trainer.predict(averaged_batches(), Weights::trained);
      EXPECT_FALSE(std::ranges::equal(predicted.values(), trained.values()));
      outputs[static_cast<std::size_t>(replica.rank())].assign(predicted.values().begin(), predicted.values().end());
    });
    return outputs;
  };

  const std::vector<std::vector<float>> of_two = predict(2);

  EXPECT_EQ(of_two[0], predict(1)[0]);
  EXPECT_EQ(of_two[1], of_two[0]);
}

TEST(SwapEMAWeights, LosesItsSayWhereOtherWeightsAreLoaded) {
  const TemporaryFolder folder;
  Replica alone = Replica::alone();
  Trainer trainer(alone, small_model(), Adam(averaging_options()), loss_of_averages());
  trainer.save(folder / "initial.h5");
  const Logs expected = trainer.evaluate(averaged_batches());
  trainer.fit(averaged_batches(), {.callbacks = {SwapEMAWeights()}});

  trainer.load_weights(folder / "initial.h5");

  EXPECT_EQ(trainer.evaluate(averaged_batches()), expected);
}

TEST(SwapEMAWeights, NeedsAnOptimizerThatKeepsAverages) {
  Replica alone = Replica::alone();
  Trainer trainer(alone, small_model(), Adam(0.01F), loss_of_averages());

  EXPECT_THAT(sentence_thrown_by([&] { trainer.fit(averaged_batches(), {.callbacks = {SwapEMAWeights()}}); }),
              HasSubstr("give it the option .use_ema = true"));
  EXPECT_THAT(sentence_thrown_by([&] { trainer.evaluate(averaged_batches(), Weights::averaged); }),
              HasSubstr("evaluate() asks for moving averages"));
  EXPECT_THAT(sentence_thrown_by([&] { trainer.averaged_model(); }), HasSubstr("averaged_model()"));
}

TEST(WeightAverages, AreTakenFromSavepoints) {
  const TemporaryFolder folder;
  const std::string path = folder / "averages.h5";
  Replica alone = Replica::alone();
  Trainer trainer(alone, small_model().frozen("conv2d"), Adam(averaging_options()), loss_of_averages());
  trainer.fit(averaged_batches());
  trainer.save(path);
  const Logs expected = trainer.evaluate(averaged_batches(), Weights::averaged);

  trainer.load_weights(path, Weights::averaged);

  EXPECT_EQ(trainer.evaluate(averaged_batches()), expected);
  // A frozen layer has no average, and keeps its own weights.
  EXPECT_EQ(load_model(path, Weights::averaged).frozen_layers(), std::vector<std::string>{"conv2d"});
}

// fit(), the averages, and a further fit() from them. A failure at a step of the second fit() ends the run.
std::string train_on_from_averages(const ThreadRun& run, std::int64_t fail_at = -1) {
  std::string digest;
  train_on_threads(run, [&](Replica& replica) {
    const Model model = small_model();
    Trainer trainer(replica, model, Adam(averaging_options()), loss_of_averages());
    trainer.fit(averaged_batches());
    trainer.take_averages();
    // A run that goes on within the second fit() passes the call.
    if (trainer.step() == 6) {
      EXPECT_TRUE(std::ranges::equal(model.parameter_values(), trainer.averaged_model().parameter_values()));
    }
    trainer.fit(averaged_batches(), {.epochs = 2, .callbacks = {ModelCheckpoint(), FailAt(fail_at)}});
    if (replica.is_primary()) digest = trainer.weights_digest().hex();
  });
  return digest;
}

TEST(TakeAverages, IsACallOfTheRunWithTheSameBitsOnAnyNumberOfReplicasAndAfterFailures) {
  const std::string expected = train_on_from_averages({.run_directory = TemporaryFolder().path()});
  // Before the first savepoint of the second fit(), so that the call is repeated, and after it.
  for (const std::int64_t fail_at : {8, 14}) {
    const TemporaryFolder failed;
    EXPECT_ANY_THROW(train_on_from_averages({.replicas = 2, .run_directory = failed.path()}, fail_at));
    EXPECT_EQ(train_on_from_averages({.replicas = 2, .run_directory = failed.path()}), expected) << fail_at;
  }
  EXPECT_EQ(train_on_from_averages({.replicas = 3, .run_directory = TemporaryFolder().path()}), expected);
}

TEST(TakeAverages, ChangesWhatTheTrainingGoesOnFrom) {
  const auto train = [](bool takes) {
    Replica alone = Replica::alone();
    Trainer trainer(alone, small_model(), Adam(averaging_options()), loss_of_averages());
    trainer.fit(averaged_batches(), {.callbacks = {SwapEMAWeights()}});
    const Logs averaged = trainer.evaluate(averaged_batches());
    if (takes) trainer.take_averages();
    EXPECT_EQ(trainer.evaluate(averaged_batches()) == averaged, true);
    trainer.fit(averaged_batches());
    return trainer.weights_digest().hex();
  };

  EXPECT_NE(train(true), train(false));
}

TEST(TakeAverages, LeavesFrozenLayersAndNeedsAnOptimizerThatKeepsAverages) {
  Replica alone = Replica::alone();
  const Model frozen = small_model().frozen("conv2d");
  {
    Trainer trainer(alone, frozen, Adam(averaging_options()), loss_of_averages());
    trainer.fit(averaged_batches());
    const Logs expected = trainer.evaluate(averaged_batches(), Weights::averaged);
    trainer.take_averages();
    EXPECT_EQ(trainer.evaluate(averaged_batches()), expected);
  }
  Trainer plain(alone, small_model(), Adam(0.01F), loss_of_averages());
  EXPECT_THAT(sentence_thrown_by([&] { plain.take_averages(); }),
              HasSubstr("take_averages() asks for moving averages"));
}

TEST(WeightAverages, BeginAnewWithAnOptimizerAfterCompile) {
  Replica alone = Replica::alone();
  const Model model = small_model();
  Trainer trainer(alone, model, SGD(0.01F), loss_of_averages());
  trainer.fit(averaged_batches());

  trainer.compile(model, Adam(averaging_options()));

  EXPECT_TRUE(std::ranges::equal(trainer.averaged_model().parameter_values(), model.parameter_values()));
}

TEST(WeightAverages, AreRefusedFromASavepointWithoutThem) {
  const TemporaryFolder folder;
  Replica alone = Replica::alone();
  Trainer trainer(alone, small_model(), Adam(0.01F), loss_of_averages());
  trainer.save(folder / "plain.h5");

  EXPECT_THAT(sentence_thrown_by([&] { load_model(folder / "plain.h5", Weights::averaged); }),
              HasSubstr("has no moving averages of its weights"));
}

// Keeps averages, and gives its arrays names of its own.
class OwnAverages final : public Trainable {
 public:
  explicit OwnAverages(std::vector<std::string> names) : names_(std::move(names)), values_(names_.size()) {}

  bool keeps_averages() const override { return true; }
  std::vector<StateSpan> state() override {
    std::vector<StateSpan> spans;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      spans.push_back({.name = names_[i], .shape = Shape{1}, .values = std::span(&values_[i], 1)});
    }
    return spans;
  }
  std::string graph() const override { return "{}"; }
  std::string configuration() const override { return "{}"; }
  std::string arithmetic() const override { return "none"; }
  Shape feature_shape() const override { return {}; }
  Shape target_shape() const override { return {}; }
  Shape output_shape() const override { return {}; }
  std::vector<std::string> sum_names() const override { return {"loss"}; }
  std::size_t gradient_count() const override { return 1; }
  void prepare(const Workers&) override {}
  void initialize(std::uint64_t) override {}
  void compute_gradients(const ShardBatch&, GradientSink&, std::span<float>) override {}
  void compute_sums(const ShardBatch&, std::span<float>) override {}
  void predict(const ShardBatch&, std::span<float>) override {}
  void apply_update(const Update&) override {}

 private:
  std::vector<std::string> names_;
  std::vector<float> values_;
};

TEST(TakeAverages, NeedsNamesThatSayWhatATrainableOfOnesOwnAverages) {
  const auto sentence_for = [](std::vector<std::string> names) {
    Replica alone = Replica::alone();
    OwnAverages trainable(std::move(names));
    Trainer trainer(alone, trainable);
    return sentence_thrown_by([&] { trainer.take_averages(); });
  };

  EXPECT_THAT(sentence_for({"model/w", "optimizer/ema/w"}), HasSubstr("no array of the state has a name that begins"));
  EXPECT_THAT(sentence_for({"model/v", "optimizer/moving_average/w"}), HasSubstr("but no weights \"model/w\""));
}

}  // namespace
}  // namespace holdfast
