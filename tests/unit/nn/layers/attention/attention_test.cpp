#include "holdfast/nn/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "holdfast/nn/model.h"
#include "nn/program/model_program.h"
#include "unit/nn/support/reference_check.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

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
