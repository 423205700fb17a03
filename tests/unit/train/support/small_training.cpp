// Fifty-three samples in batches of ten leave a short last batch, and shards of different sizes.

#include "unit/train/support/small_training.h"

#include <gtest/gtest.h>

#include <utility>

#include "holdfast/format/catalogue.h"

namespace holdfast {

Sequential small_model() {
  return Sequential{Input{6, 6, 1},
                    Conv2D{3, 3, {.activation = Activation::relu}},
                    BatchNormalization{},
                    MaxPooling2D{2},
                    Flatten{},
                    Dropout{0.25F},
                    Dense{8, {.activation = Activation::gelu}},
                    Dense{3}};
}

Dataset small_data(std::int64_t samples) {
  Tensor features(Shape{samples, 6, 6, 1});
  Tensor targets(Shape{samples});
  for (std::int64_t i = 0; i < samples; ++i) {
    Random random(9, Purpose::user, 0, static_cast<std::uint64_t>(i));
    const auto label = static_cast<float>(random.below(3));
    targets.values()[static_cast<std::size_t>(i)] = label;
    for (float& value : features.sample(i)) value = random.normal() + label;
  }
  return from_tensors(std::move(features), std::move(targets));
}

Outcome train_small(Replica& replica, std::vector<CallbackHandle> callbacks, std::int64_t epochs) {
  Trainer trainer(replica, small_model(), Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true}),
                  {SparseCategoricalAccuracy({.name = "accuracy"})});
  const FitResult fit =
      trainer.fit(small_data().shuffle().batch(10).prefetch(1),
                  {.epochs = epochs, .validation = small_data(20).batch(7), .callbacks = std::move(callbacks)});
  return {trainer.weights_digest().hex(), trainer.step(), fit.results, trainer.evaluate(small_data(31).batch(8)),
          fit.history};
}

Outcome train_with(Replica& replica, const Optimizer& optimizer, std::vector<CallbackHandle> callbacks) {
  Trainer trainer(replica, small_model(), optimizer, SparseCategoricalCrossentropy({.from_logits = true}));
  const FitResult fit = trainer.fit(small_data().shuffle().batch(10), {.epochs = 2, .callbacks = std::move(callbacks)});
  return {trainer.weights_digest().hex(), trainer.step(), fit.results, {}, fit.history};
}

std::vector<std::shared_ptr<const Optimizer>> clipping_optimizers() {
  const CosineDecay cosine{0, 10, {.alpha = 0.1F, .warmup_target = 0.05F, .warmup_steps = 3}};
  const PolynomialDecay linear{0.1F, 8, {.cycle = true}};
  const ExponentialDecay exponential{0.01F, 4, 0.5F};
  return {std::make_shared<SGD>(SGDOptions{.learning_rate = cosine, .momentum = 0.9F, .clip_value = 0.01F}),
          std::make_shared<SGD>(SGDOptions{.learning_rate = linear, .clip_norm = 0.05F}),
          std::make_shared<SGD>(SGDOptions{.learning_rate = linear, .global_clip_norm = 0.1F}),
          std::make_shared<Adam>(AdamOptions{.learning_rate = cosine, .clip_norm = 0.05F}),
          std::make_shared<AdamW>(AdamWOptions{.learning_rate = exponential, .global_clip_norm = 0.1F})};
}

Outcome train_without_parameters(Replica& replica) {
  const Dataset data = from_tensors(Tensor(Shape{10, 4}), Tensor(Shape{10, 4})).batch(4);
  Trainer trainer(replica, Sequential{Input{4}, Flatten{}}, SGD(0.1F), MeanSquaredError{});
  trainer.fit(data, {.epochs = 2});
  return {trainer.weights_digest().hex(), trainer.step(), {}, trainer.evaluate(data), {}};
}

std::vector<Outcome> outcomes_of(const ThreadRun& run, const std::function<Outcome(Replica&)>& train) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(run.replicas));
  train_on_threads(run, [&](Replica& replica) { outcomes[static_cast<std::size_t>(replica.rank())] = train(replica); });
  return outcomes;
}

std::vector<CallbackHandle> no_callbacks() {
  return {};
}
std::vector<CallbackHandle> checkpoint() {
  return {ModelCheckpoint()};
}
std::vector<CallbackHandle> checkpoint_every_two() {
  return {ModelCheckpoint({.every_steps = 2})};
}

Outcome outcome_of(const ThreadRun& run, const MakeCallbacks& callbacks) {
  return outcomes_of(run, [&](Replica& replica) { return train_small(replica, callbacks()); })[0];
}

void expect_equal(const Outcome& left, const Outcome& right) {
  EXPECT_EQ(left.digest, right.digest);
  EXPECT_EQ(left.step, right.step);
  EXPECT_EQ(left.results, right.results);
  EXPECT_EQ(left.evaluation, right.evaluation);
  EXPECT_EQ(left.history, right.history);
}

std::vector<std::string> savepoint_files(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : format::list_savepoints(posix_file_system(), folder)) names.push_back(entry.name);
  return names;
}

}  // namespace holdfast
