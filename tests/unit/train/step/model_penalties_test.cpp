// Penalties of regularizers against Keras in float64 (scripts/tests/regularizer_cases.py), constraints, and rules of
// single arrays.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "holdfast/holdfast.h"
#include "support/folders.h"
#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "unit/train/support/played_callbacks.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;

Json regularizer_cases() {
  std::ifstream file(source_folder() + "/tests/unit/train/reference/regularizers.json");
  return Json::parse(file);
}

Regularizer regularizer_named(const Json& text) {
  return text == "" ? Regularizer() : Regularizer::from_name(text.get<std::string>());
}

Model regularized_model(const Json& one) {
  const Json& names = one["regularizers"];
  Model model = Sequential{Input{3},
                           Dense{4,
                                 {.activation = Activation::tanh,
                                  .kernel_regularizer = regularizer_named(names[0]),
                                  .bias_regularizer = regularizer_named(names[1])}},
                           Dense{1, {.kernel_regularizer = regularizer_named(names[2])}}};
  std::vector<float> parameters(model.parameters().float_count());
  for (std::size_t entry = 0; entry < 4; ++entry) {
    const auto values = one["begin"][entry].get<std::vector<float>>();
    std::ranges::copy(values, model.parameters().view(std::span<float>(parameters), entry).begin());
  }
  model.set_weights(parameters, {});
  return model;
}

Dataset data_of(const Json& one) {
  Tensor x{Shape{12, 3}}, y{Shape{12, 1}};
  std::ranges::copy(one["x"].get<std::vector<float>>(), x.values().begin());
  std::ranges::copy(one["y"].get<std::vector<float>>(), y.values().begin());
  return from_tensors(std::move(x), std::move(y));
}

struct Trained {
  std::vector<double> losses;
  double evaluation = 0;
  std::vector<float> parameters;
};

Trained train_regularized(const Json& one, const ThreadRun& run, const Optimizer& optimizer = SGD(0.125F)) {
  const Model model = regularized_model(one);
  Trained trained;
  train_on_threads(run, [&](Replica& replica) {
    const Model own = Model::from_graph(model.graph());
    Model copy = own;
    copy.set_weights({model.parameter_values().begin(), model.parameter_values().end()}, {});
    Trainer trainer(replica, copy, optimizer, MeanSquaredError());
    const FitResult fit = trainer.fit(data_of(one).batch(12), {.epochs = 3});
    const Logs evaluation = trainer.evaluate(data_of(one).batch(12));
    if (!replica.is_primary()) return;
    for (const Logs& epoch : fit.history) trained.losses.push_back(epoch.at("loss"));
    trained.evaluation = evaluation.at("loss");
    trained.parameters.assign(copy.parameter_values().begin(), copy.parameter_values().end());
  });
  return trained;
}

// Sums of a few dozen products of numbers below 2, in float: some ulps of 1, tripled by three steps.
constexpr double kNear = 2e-6;

TEST(Penalties, TrainAsInKerasOnAnyNumberOfShards) {
  for (const Json& one : regularizer_cases()) {
    for (const int shards : {1, 3, 5}) {
      SCOPED_TRACE(one["regularizers"].dump() + " with " + std::to_string(shards) + " shards");
      const Trained trained = train_regularized(one, {.shards = shards});

      const auto losses = one["losses"].get<std::vector<double>>();
      for (std::size_t epoch = 0; epoch < 3; ++epoch) EXPECT_NEAR(trained.losses[epoch], losses[epoch], kNear);
      EXPECT_NEAR(trained.evaluation, one["evaluation"].get<double>(), kNear);
      const Model model = regularized_model(one);
      for (std::size_t entry = 0; entry < 4; ++entry) {
        const auto expected = one["end"][entry].get<std::vector<double>>();
        const std::span<const float> found = model.parameters().view(std::span<const float>(trained.parameters), entry);
        for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], kNear) << entry;
      }
    }
  }
}

TEST(Penalties, HaveTheSameBitsOnAnyNumberOfReplicas) {
  const Json one = regularizer_cases()[2];
  const Trained alone = train_regularized(one, {});

  const Trained mirrored = train_regularized(one, {.replicas = 3});

  EXPECT_EQ(mirrored.losses, alone.losses);
  EXPECT_EQ(mirrored.parameters, alone.parameters);
}

TEST(Penalties, AreClippedWithTheGradient) {
  const Json one = regularizer_cases()[2];
  const float limit = 0.001F;

  const Trained trained = train_regularized(one, {}, SGD({.learning_rate = 0.125F, .clip_value = limit}));

  const Model model = regularized_model(one);
  for (std::size_t i = 0; i < trained.parameters.size(); ++i) {
    // Three steps, each of at most the limit.
    EXPECT_LE(std::abs(trained.parameters[i] - model.parameter_values()[i]), 3.01F * 0.125F * limit);
  }
}

TEST(Penalties, DoNotCountFrozenLayers) {
  const Json one = regularizer_cases()[0];
  const Model frozen = regularized_model(one).frozen("dense");
  Json plain = one;
  plain["regularizers"] = {"", "", ""};
  const Model other = regularized_model(plain).frozen("dense");
  const auto loss_of = [&](const Model& model) {
    Replica alone = Replica::alone();
    Trainer trainer(alone, model, SGD(), MeanSquaredError());
    return trainer.evaluate(data_of(one).batch(12)).at("loss");
  };

  EXPECT_EQ(loss_of(frozen), loss_of(other));
}

// The weights of a case, of which each array has a bound if `is_bounded`.
Model bounded_model(const Json& one, bool is_bounded) {
  const Constraint norm = is_bounded ? Constraint::max_norm(0.5F) : Constraint();
  const Constraint plus = is_bounded ? Constraint::non_neg() : Constraint();
  Model model = Sequential{
      Input{3}, Dense{4, {.activation = Activation::tanh, .kernel_constraint = norm, .bias_constraint = plus}},
      Dense{1, {.kernel_constraint = is_bounded ? Constraint::unit_norm() : Constraint(), .bias_constraint = plus}}};
  const Model weights = regularized_model(one);
  model.set_weights({weights.parameter_values().begin(), weights.parameter_values().end()}, {});
  return model;
}

std::vector<float> train_bounded(const Json& one, bool is_bounded, const ThreadRun& run, std::int64_t epochs,
                                 const Optimizer& optimizer = SGD(0.125F), std::int64_t fail_at = -1) {
  std::vector<float> parameters;
  train_on_threads(run, [&](Replica& replica) {
    const Model model = bounded_model(one, is_bounded);
    Trainer trainer(replica, model, optimizer, MeanSquaredError());
    trainer.fit(data_of(one).batch(6), {.epochs = epochs, .callbacks = {ModelCheckpoint(), FailAt(fail_at)}});
    if (replica.is_primary()) parameters.assign(model.parameter_values().begin(), model.parameter_values().end());
  });
  return parameters;
}

TEST(Constraints, FollowTheUpdate) {
  const Json one = regularizer_cases()[0];
  const Model before = bounded_model(one, true);
  const auto step_of = [&](bool is_bounded) {
    Model model = bounded_model(one, is_bounded);
    Replica alone = Replica::alone();
    Trainer trainer(alone, model, SGD(0.125F), MeanSquaredError());
    trainer.fit(data_of(one).batch(12));
    return std::vector<float>(model.parameter_values().begin(), model.parameter_values().end());
  };
  std::vector<float> expected = step_of(false);
  const ArenaLayout& layout = before.parameters();
  const std::vector<Constraint> constraints = {Constraint::max_norm(0.5F), Constraint::non_neg(),
                                               Constraint::unit_norm(), Constraint::non_neg()};
  for (std::size_t entry = 0; entry < 4; ++entry) {
    constraints[entry].apply(layout.entries()[entry].shape, layout.view(std::span<float>(expected), entry));
  }

  EXPECT_EQ(step_of(true), expected);
}

TEST(Constraints, HaveTheSameBitsOnAnyNumberOfReplicasAndAfterFailures) {
  const Json one = regularizer_cases()[1];
  const TemporaryFolder plain, failed, many;
  const std::vector<float> expected = train_bounded(one, true, {.run_directory = plain.path()}, 3);
  EXPECT_ANY_THROW(train_bounded(one, true, {.run_directory = failed.path()}, 3, SGD(0.125F), 5));

  EXPECT_EQ(train_bounded(one, true, {.replicas = 2, .run_directory = failed.path()}, 3), expected);
  EXPECT_EQ(train_bounded(one, true, {.replicas = 3, .run_directory = many.path()}, 3), expected);
}

TEST(Constraints, ComeAfterTheMovingAverageAsInKeras) {
  const Json one = regularizer_cases()[0];
  const auto averages_of = [&](bool is_bounded) {
    Replica alone = Replica::alone();
    Trainer trainer(alone, bounded_model(one, is_bounded), SGD({.learning_rate = 0.125F, .use_ema = true}),
                    MeanSquaredError());
    trainer.fit(data_of(one).batch(12));
    const Model averaged = trainer.averaged_model();
    return std::vector<float>(averaged.parameter_values().begin(), averaged.parameter_values().end());
  };

  // After one update the average is the weights before they were bounded.
  EXPECT_EQ(averages_of(true), averages_of(false));
}

TEST(Constraints, DoNotChangeFrozenLayers) {
  const Json one = regularizer_cases()[0];
  const Model model = bounded_model(one, true).frozen("dense");
  const std::vector<float> before(model.buffer_values().begin(), model.buffer_values().end());
  Replica alone = Replica::alone();
  Trainer trainer(alone, model, SGD(0.125F), MeanSquaredError());

  trainer.fit(data_of(one).batch(12));

  EXPECT_TRUE(std::ranges::equal(model.buffer_values(), before));
}

TEST(ParameterRules, KeepArraysFromDecayingAndMovingWithTheBitsOfThoseOptions) {
  const Json one = regularizer_cases()[0];
  const AdamWOptions options = {.learning_rate = 0.01F, .weight_decay = 0.5F};
  AdamWOptions with_rules = options;
  with_rules.exclude_from_weight_decay = {"*/bias"};
  with_rules.learning_rate_factors = {{"dense_1", 0.25F}, {"*", 1.0F}, {"dense_1", 0.5F}};
  const Trained ruled = train_regularized(one, {}, AdamW(with_rules));

  // The layers depend on each other, so one step of each optimizer is compared.
  const auto first_step = [&](const Optimizer& optimizer) {
    Model model = regularized_model(one);
    Replica alone = Replica::alone();
    Trainer trainer(alone, model, optimizer, MeanSquaredError());
    trainer.fit(data_of(one).batch(12), {.epochs = 1});
    return std::vector<float>(model.parameter_values().begin(), model.parameter_values().end());
  };
  const std::vector<float> found = first_step(AdamW(with_rules));
  AdamWOptions slow = options;
  slow.learning_rate = 0.005F;
  AdamWOptions slow_without_decay = slow;
  slow_without_decay.weight_decay = 0;
  AdamWOptions without_decay = options;
  without_decay.weight_decay = 0;
  const std::vector<std::vector<float>> expected = {first_step(AdamW(options)), first_step(AdamW(without_decay)),
                                                    first_step(AdamW(slow)), first_step(AdamW(slow_without_decay))};
  const Model model = regularized_model(one);
  const ArenaLayout& layout = model.parameters();
  for (std::size_t entry = 0; entry < 4; ++entry) {
    EXPECT_TRUE(std::ranges::equal(layout.view(std::span<const float>(found), entry),
                                   layout.view(std::span<const float>(expected[entry]), entry)))
        << layout.entries()[entry].name;
  }
  EXPECT_EQ(ruled.losses.size(), 3U);
}

TEST(ParameterRules, GiveEachLayerItsWeightDecayWithTheBitsOfThatOption) {
  const Json one = regularizer_cases()[0];
  const auto first_step = [&](const Optimizer& optimizer) {
    Model model = regularized_model(one);
    Replica alone = Replica::alone();
    Trainer trainer(alone, model, optimizer, MeanSquaredError());
    trainer.fit(data_of(one).batch(12), {.epochs = 1});
    return std::vector<float>(model.parameter_values().begin(), model.parameter_values().end());
  };
  const auto with_decay = [](float weight_decay) {
    return AdamW({.learning_rate = 0.01F, .weight_decay = weight_decay});
  };
  const std::vector<float> found =
      first_step(AdamW({.learning_rate = 0.01F,
                        .weight_decay = 0.5F,
                        .exclude_from_weight_decay = {"*/bias"},
                        .weight_decay_factors = {{"dense_1", 0.25F}, {"*", 1.0F}, {"dense_1/*", 3.0F}}}));

  const std::vector<std::vector<float>> expected = {first_step(with_decay(0.5F)), first_step(with_decay(0)),
                                                    first_step(with_decay(1.5F)), first_step(with_decay(0))};
  const Model model = regularized_model(one);
  const ArenaLayout& layout = model.parameters();
  for (std::size_t entry = 0; entry < 4; ++entry) {
    EXPECT_TRUE(std::ranges::equal(layout.view(std::span<const float>(found), entry),
                                   layout.view(std::span<const float>(expected[entry]), entry)))
        << layout.entries()[entry].name;
  }
}

TEST(ParameterRules, RefuseAPatternThatMatchesNothing) {
  const Json one = regularizer_cases()[0];
  Replica alone = Replica::alone();
  try {
    Trainer trainer(alone, regularized_model(one), Adam({.exclude_from_weight_decay = {"*/gamma"}}),
                    MeanSquaredError());
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_THAT(error.what(), testing::HasSubstr("\"*/gamma\" matches no array"));
  }
}

}  // namespace
}  // namespace holdfast
