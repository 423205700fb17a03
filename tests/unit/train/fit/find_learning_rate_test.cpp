#include "holdfast/train/find_learning_rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

// y = 3 x0 - 2 x1, which a Dense layer learns.
Dataset lines(std::int64_t samples = 64) {
  Tensor features(Shape{samples, 2});
  Tensor targets(Shape{samples, 1});
  for (std::int64_t i = 0; i < samples; ++i) {
    Random random(4, Purpose::user, 0, static_cast<std::uint64_t>(i));
    const float x0 = random.normal();
    const float x1 = random.normal();
    features.sample(i)[0] = x0;
    features.sample(i)[1] = x1;
    targets.sample(i)[0] = 3 * x0 - 2 * x1;
  }
  return from_tensors(std::move(features), std::move(targets)).shuffle().batch(16);
}

Sequential line_model() {
  return Sequential{Input{2}, Dense{1}};
}

std::vector<double> losses_of(const LearningRateCurve& curve) {
  std::vector<double> losses;
  for (const TriedRate& tried : curve.tried) losses.push_back(tried.loss);
  return losses;
}

std::string refusal_of(const FindLearningRateOptions& options) {
  try {
    find_learning_rate(line_model(), SGD{0.1F}, MeanSquaredError{}, lines(), options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "nothing was thrown";
}

// SGD whose rate nothing can change.
class FixedRate final : public Optimizer {
 public:
  std::string name() const override { return "fixed_rate"; }
  std::string configuration() const override { return R"({"kind":"fixed_rate"})"; }
  std::unique_ptr<Optimizer> clone() const override { return std::make_unique<FixedRate>(*this); }
  std::vector<std::string> slot_names() const override { return {}; }
  void update(std::int64_t, std::span<float>, std::span<const float>,
              std::span<const std::span<float>>) const override {}
};

}  // namespace

TEST(FindLearningRate, RaisesTheRateByOneFactorUntilTheLossExplodes) {
  const LearningRateCurve curve = find_learning_rate(line_model(), SGD{0.1F}, MeanSquaredError{}, lines(),
                                                     {.lowest = 1e-4F, .highest = 1e4F, .steps = 81});

  ASSERT_GT(curve.tried.size(), 20U);
  ASSERT_LT(curve.tried.size(), 81U);
  EXPECT_TRUE(curve.has_exploded);
  EXPECT_EQ(curve.tried[0].rate, 1e-4F);
  EXPECT_NEAR(curve.tried[10].rate, 1e-3F, 1e-8F);
  for (const TriedRate& tried : curve.tried) EXPECT_TRUE(std::isfinite(tried.smoothed_loss));
}

// The loss of a quadratic falls at rates below 1 and rises above.
TEST(FindLearningRate, SuggestsARateWithWhichTheModelLearns) {
  const LearningRateCurve curve = find_learning_rate(line_model(), SGD{0.1F}, MeanSquaredError{}, lines());

  ASSERT_TRUE(curve.suggested);
  EXPECT_GT(*curve.suggested, 1e-3F);
  EXPECT_LT(*curve.suggested, 1.0F);
  Replica alone = Replica::alone();
  Trainer trainer(alone, line_model(), SGD{*curve.suggested}, MeanSquaredError{});
  EXPECT_LT(trainer.fit(lines(), {.epochs = 100}).results.at("loss"), 0.01);
}

TEST(FindLearningRate, SmoothsTheLoss) {
  const FindLearningRateOptions options = {.lowest = 1e-6F, .highest = 1e-5F, .steps = 3, .smoothing = 0.5};
  const LearningRateCurve curve = find_learning_rate(line_model(), SGD{0.1F}, MeanSquaredError{}, lines(), options);

  ASSERT_EQ(curve.tried.size(), 3U);
  const std::vector<double> losses = losses_of(curve);
  EXPECT_EQ(curve.tried[0].smoothed_loss, losses[0]);
  EXPECT_NEAR(curve.tried[2].smoothed_loss, (losses[0] + 2 * losses[1] + 4 * losses[2]) / 7, 1e-12);
}

TEST(FindLearningRate, LeavesTheModelAndItsTrainerAsTheyWere) {
  Replica alone = Replica::alone();
  const Model model = line_model();
  Trainer trainer(alone, model, Adam{0.01F}, MeanSquaredError{});
  trainer.fit(lines());
  const std::vector<float> weights(model.parameter_values().begin(), model.parameter_values().end());
  const std::string digest = trainer.weights_digest().hex();

  const LearningRateCurve curve = find_learning_rate(model, Adam{0.01F}, MeanSquaredError{}, lines());

  EXPECT_GT(curve.tried.size(), 10U);
  EXPECT_TRUE(std::ranges::equal(model.parameter_values(), weights));
  EXPECT_EQ(trainer.weights_digest().hex(), digest);
  // It began with the weights of the model.
  EXPECT_LT(curve.tried[0].loss, find_learning_rate(line_model(), Adam{}, MeanSquaredError{}, lines()).tried[0].loss);
}

TEST(FindLearningRate, GivesTheSameCurveEachTime) {
  const FindLearningRateOptions options = {.steps = 30, .seed = 5, .shards = 2};
  const SparseCategoricalCrossentropy loss({.from_logits = true});
  const auto found = [&] { return find_learning_rate(small_model(), Adam{}, loss, small_data().batch(10), options); };
  const LearningRateCurve curve = found();

  EXPECT_EQ(losses_of(found()), losses_of(curve));
  EXPECT_EQ(found().suggested, curve.suggested);
}

TEST(FindLearningRate, TakesTheScheduleOfAnOptimizerAway) {
  const FindLearningRateOptions options = {.steps = 20};
  const auto losses = [&](const Optimizer& optimizer) {
    return losses_of(find_learning_rate(line_model(), optimizer, MeanSquaredError{}, lines(), options));
  };

  EXPECT_EQ(losses(SGD{CosineDecay{0.5F, 3}}), losses(SGD{7.0F}));
}

TEST(FindLearningRate, SuggestsNothingWhereTheLossNeverFalls) {
  const LearningRateCurve curve = find_learning_rate(line_model(), SGD{0.1F}, MeanSquaredError{}, lines(),
                                                     {.lowest = 5, .highest = 500, .steps = 20});

  EXPECT_TRUE(curve.has_exploded);
  EXPECT_FALSE(curve.suggested);
}

TEST(FindLearningRate, RefusesWhatMakesNoCurve) {
  EXPECT_THAT(refusal_of({.lowest = 0}), HasSubstr("the lowest rate is above 0"));
  EXPECT_THAT(refusal_of({.lowest = 1, .highest = 1}), HasSubstr("the highest above it"));
  EXPECT_THAT(refusal_of({.steps = 1}), HasSubstr("at least 2"));
  EXPECT_THAT(refusal_of({.smoothing = 1}), HasSubstr("smoothing 1"));
  EXPECT_THAT(refusal_of({.explodes_at = 1}), HasSubstr("explodes_at 1"));
  try {
    find_learning_rate(line_model(), FixedRate(), MeanSquaredError{}, lines());
    ADD_FAILURE() << "the rate of this optimizer cannot change";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
  }
}

}  // namespace holdfast
