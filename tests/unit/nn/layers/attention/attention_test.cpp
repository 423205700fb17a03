#include "holdfast/nn/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "holdfast/nn/dense.h"
#include "holdfast/nn/functions.h"
#include "holdfast/nn/model.h"
#include "holdfast/nn/recompute.h"
#include "nn/model/description.h"
#include "nn/program/model_program.h"
#include "unit/nn/support/reference_check.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using reference::Values;
using testing::HasSubstr;

constexpr std::int64_t kAttended = 8;
constexpr std::int64_t kAttendedWidth = 4;

// What Attention gives, and its scores, for queries that a layer without bias makes of the keys.
Model attention_with_dropout(bool is_recomputed) {
  const Value x = input({kAttended, kAttendedWidth});
  const Value y = recompute(is_recomputed, [&] {
    const Value query = Dense{kAttendedWidth, {.use_bias = false}}(x);
    const Attention attention{{.dropout = 0.5F, .return_attention_scores = true}};
    return concatenate(attention.call(std::vector<Value>{query, x}));
  });
  return Model(x, tanh(y));
}

// The same in double, with the factor of each score.
Values reference_of_attention(const Values& x, const Values& kernel, const Values& factors) {
  const Values queries = reference::dense(x, kAttendedWidth, kernel, {}, kAttendedWidth);
  Values result;
  for (std::int64_t step = 0; step < kAttended; ++step) {
    Values scores;
    double sum = 0;
    for (std::int64_t key = 0; key < kAttended; ++key) {
      double product = 0;
      for (std::int64_t i = 0; i < kAttendedWidth; ++i)
        product += queries[step * kAttendedWidth + i] * x[key * kAttendedWidth + i];
      scores.push_back(std::exp(product));
      sum += scores.back();
    }
    for (std::int64_t key = 0; key < kAttended; ++key) scores[key] *= factors[step * kAttended + key] / sum;
    for (std::int64_t i = 0; i < kAttendedWidth; ++i) {
      double value = 0;
      for (std::int64_t key = 0; key < kAttended; ++key) value += scores[key] * x[key * kAttendedWidth + i];
      result.push_back(std::tanh(value));
    }
    for (const double score : scores) result.push_back(std::tanh(score));
  }
  return result;
}

struct Pass {
  std::vector<float> outputs;
  std::vector<float> gradients;
};

// From -0.5 to 0.5, so that softmax gives no share nearly all.
std::vector<float> small_values(std::size_t count, std::uint64_t number) {
  std::vector<float> values = reference::random_values(count, number);
  for (float& value : values) value *= 0.5F;
  return values;
}

Pass training_pass(const Model& model, const std::vector<float>& x, const std::vector<float>& kernel,
                   const std::vector<float>& output_gradient) {
  ModelProgram program(model, 1);
  const std::span<const float> outputs = program.forward_training(x, 1, kernel, {.seed = 3});
  Pass pass{.outputs = {outputs.begin(), outputs.end()}, .gradients = std::vector<float>(kernel.size())};
  std::vector<float> contributions(program.contribution_count());
  program.backward(output_gradient, kernel, pass.gradients, contributions);
  return pass;
}

TEST(Attention, TakesTheValuesOfTheKeysThatFit) {
  const Value query = input({1, 2}), value = input({2, 2});
  Model model({query, value}, Attention{{.return_attention_scores = true}}.call(std::vector<Value>{query, value}));
  model.set_weights({}, {});

  const std::vector<Tensor> outputs = model.predict(std::vector<Tensor>{
      Tensor(Shape{1, 1, 2}, std::vector<float>{50, 0}), Tensor(Shape{1, 2, 2}, std::vector<float>{1, 2, -1, 3})});

  // The scores are 50 and -50, and e^-100 is nothing next to 1.
  EXPECT_THAT(outputs[0].values(), testing::ElementsAre(1, 2));
  EXPECT_EQ(outputs[1].values()[0], 1);
  EXPECT_LT(outputs[1].values()[1], 1e-40);
}

// As in Keras. They were those before dropout, so a loss of the scores had another gradient.
TEST(Attention, GivesTheScoresAfterDropoutInTraining) {
  const Value x = input({8, 4});
  const std::vector<Value> inputs = {x};
  const std::vector<float> numbers = reference::random_values(32, 1);
  for (const Value& scores :
       {Attention{{.dropout = 0.5F, .return_attention_scores = true}}.call(inputs)[1],
        AdditiveAttention{{.use_scale = false, .dropout = 0.5F, .return_attention_scores = true}}.call(inputs)[1]}) {
    ModelProgram program(Model(x, scores), 1);
    const auto applied = program.forward_inference(numbers, 1, {}, {});
    const std::vector<float> whole(applied.begin(), applied.end());
    const auto dropped = program.forward_training(numbers, 1, {}, {.seed = 3});

    ASSERT_EQ(dropped.size(), 64U);
    for (std::size_t i = 0; i < dropped.size(); ++i) {
      // The rest is scaled by 1 / (1 - rate), which is 2.
      EXPECT_TRUE(dropped[i] == 0 || dropped[i] == 2 * whole[i]) << i;
    }
    // With 64 draws of one half, all are equal in two of 2^64 cases.
    EXPECT_GT(std::ranges::count(dropped, 0.0F), 0);
    EXPECT_LT(std::ranges::count(dropped, 0.0F), 64);
  }
}

TEST(Attention, HasTheGradientOfItsScoresAfterDropout) {
  const Model model = attention_with_dropout(false);
  const std::vector<float> x = small_values(kAttended * kAttendedWidth, 1);
  const std::vector<float> kernel = small_values(kAttendedWidth * kAttendedWidth, 2);
  const std::vector<float> output_gradient = reference::random_values(kAttended * (kAttendedWidth + kAttended), 3);

  const Pass pass = training_pass(model, x, kernel, output_gradient);

  // The factors that were drawn: 0, or 1 / (1 - rate), which is 2.
  Values factors;
  for (std::int64_t step = 0; step < kAttended; ++step) {
    const auto scores = pass.outputs.begin() + step * (kAttendedWidth + kAttended) + kAttendedWidth;
    for (std::int64_t key = 0; key < kAttended; ++key) factors.push_back(scores[key] == 0 ? 0 : 2);
  }
  Values wide = reference::widened(kernel);
  const auto loss = [&] {
    const Values outputs = reference_of_attention(reference::widened(x), wide, factors);
    double sum = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i) sum += outputs[i] * output_gradient[i];
    return sum;
  };
  // The gradient of a score is at most 2 for itself and 4 for what it gives, and softmax takes at most twice that times
  // a share; shares add up to 1. So each of the 8 queries adds at most 12 / 4. Products are at most 2: 8 roundings of
  // them change a share by 32 of its own at most, and the sums have fewer.
  const double tolerance = reference::Rounding{.paths = 8, .roundings = 64, .largest_path = 3}.tolerance();
  for (std::size_t i = 0; i < wide.size(); ++i) {
    const double before = wide[i];
    wide[i] = before + 1e-5;
    const double above = loss();
    wide[i] = before - 1e-5;
    const double below = loss();
    wide[i] = before;
    EXPECT_NEAR(pass.gradients[i], (above - below) / 2e-5, tolerance) << i;
  }
}

TEST(Attention, RecomputesItsScoresWithTheSameDropout) {
  const Model kept = attention_with_dropout(false);
  const Model recomputed = attention_with_dropout(true);
  const std::vector<float> x = small_values(kAttended * kAttendedWidth, 1);
  const std::vector<float> kernel = small_values(kAttendedWidth * kAttendedWidth, 2);
  const std::vector<float> output_gradient = reference::random_values(kAttended * (kAttendedWidth + kAttended), 3);

  const Pass expected = training_pass(kept, x, kernel, output_gradient);
  const Pass found = training_pass(recomputed, x, kernel, output_gradient);

  const std::vector<GraphOperation>& operations = recomputed.description()->training.operations;
  EXPECT_TRUE(std::ranges::any_of(operations, [](const GraphOperation& each) { return each.repeats != kNoOperation; }));
  EXPECT_EQ(found.outputs, expected.outputs);
  EXPECT_EQ(found.gradients, expected.gradients);
}

TEST(Attention, GoesThroughAFile) {
  const Value query = input({3, 2}), value = input({2, 2}), padding = input({2}, {.dtype = DType::boolean});
  const Attention attention{{.use_scale = true, .score_mode = ScoreMode::concat, .takes_padding_mask = true}};
  const Model model({query, value, padding}, {attention(query, value, padding), AdditiveAttention{}(query, value)});

  EXPECT_EQ(Model::from_graph(model.graph()).graph(), model.graph());
}

TEST(Attention, SaysWhatItNeeds) {
  const Value query = input({3, 2}), value = input({2, 4});

  EXPECT_THAT(refusal([&] { Attention{}(query, value); }), HasSubstr("queries of width 2 with keys of width 4"));
  EXPECT_THAT(refusal([&] { AdditiveAttention{}(query, value); }), HasSubstr("queries of width 2"));
  EXPECT_THAT(refusal([] { Attention({.dropout = -1}); }), HasSubstr("a rate from 0 to below 1"));
}

}  // namespace
}  // namespace holdfast
