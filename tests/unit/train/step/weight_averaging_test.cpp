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
  ASSERT_EQ(cases.size(), 13U);
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

TEST(WeightAverages, BeginAnewWithAnOptimizerAfterCompile) {
  Replica alone = Replica::alone();
  const Model model = small_model();
  Trainer trainer(alone, model, SGD(0.01F), loss_of_averages());
  trainer.fit(averaged_batches());

  trainer.compile(model, Adam(averaging_options()));

  EXPECT_TRUE(std::ranges::equal(trainer.averaged_model().parameter_values(), model.parameter_values()));
}

TEST(WeightAverages, OfASavepointWithoutThemAreRefused) {
  const TemporaryFolder folder;
  Replica alone = Replica::alone();
  Trainer trainer(alone, small_model(), Adam(0.01F), loss_of_averages());
  trainer.save(folder / "plain.h5");

  EXPECT_THAT(sentence_thrown_by([&] { load_model(folder / "plain.h5", Weights::averaged); }),
              HasSubstr("has no moving averages of the weights"));
}

}  // namespace
}  // namespace holdfast
