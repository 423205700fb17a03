#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "holdfast/nn/models.h"
#include "unit/nn/models/support/language.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

constexpr Gpt2Options kSmallGpt2 = {.vocabulary = 7, .positions = 8, .width = 12, .layers = 2, .heads = 3};

// As published. A description holds no numbers, so the largest one takes no memory.
TEST(Gpt2, HasTheParametersOfThePublishedModels) {
  EXPECT_EQ(gpt2().parameters().element_count(), 124'439'808U);
  EXPECT_EQ(gpt2({.width = 1024, .layers = 24, .heads = 16}).parameters().element_count(), 354'823'168U);
  EXPECT_EQ(gpt2({.width = 1280, .layers = 36, .heads = 20}).parameters().element_count(), 774'030'080U);
  EXPECT_EQ(gpt2({.width = 1600, .layers = 48, .heads = 25}).parameters().element_count(), 1'557'611'200U);
}

TEST(Gpt2, NamesItsLayersAsThePublishedWeights) {
  const Model model = gpt2(kSmallGpt2);
  std::vector<std::string> names;
  for (const ModelLayer& layer : model.layers()) names.push_back(layer.name);

  for (const char* name : {"wte", "wpe", "drop", "h.0.ln_1", "h.0.attn", "h.0.attn.resid_dropout", "h.0.ln_2",
                           "h.0.mlp.c_fc", "h.0.mlp.c_proj", "h.0.mlp.dropout", "h.1.ln_1", "ln_f"}) {
    EXPECT_THAT(names, testing::Contains(name));
  }
  EXPECT_THAT(model.summary(), HasSubstr("h.1.mlp.c_proj"));
}

// A table for both directions is one array; a matrix of its own has as many numbers.
TEST(Gpt2, HasOneTableOrAMatrixForScores) {
  Gpt2Options options = kSmallGpt2;
  const std::size_t tied = gpt2(options).parameters().element_count();
  options.tied_output = false;
  const Model model = gpt2(options);

  EXPECT_EQ(model.parameters().element_count(), tied + 7 * 12);
  EXPECT_EQ(model.parameters().entries().back().name, "lm_head/kernel");
}

TEST(Gpt2, HasScoresThatDependOnNoLaterId) {
  expect_causal(gpt2(kSmallGpt2), 8, 7);
}

TEST(Gpt2, TakesShorterSamplesWithTheSameTable) {
  Gpt2Options options = kSmallGpt2;
  options.length = 3;
  Model brief = gpt2(options);
  Model model = gpt2(kSmallGpt2);
  begin_with_draws(model);
  brief.take_weights(model, "");

  const Tensor all = model.predict(ids_tensor({1, 8}, {3, 1, 4, 1, 5, 2, 6, 5}));
  const Tensor some = brief.predict(ids_tensor({1, 3}, {3, 1, 4}));

  EXPECT_EQ(some.shape(), (Shape{1, 3, 7}));
  // Sums of 36 and 48 terms may be blocked otherwise for other lengths; the scores are below 1.
  for (std::size_t i = 0; i < 21; ++i) EXPECT_NEAR(some.values()[i], all.values()[i], 1e-5) << i;
}

// Deviations of 0.02, and of 0.02 / sqrt(2 * 8) where a half of a block ends.
TEST(Gpt2, BeginsWithSmallerNumbersWhereBlocksAreAdded) {
  const Model model = gpt2({.vocabulary = 50, .positions = 16, .width = 64, .layers = 8, .heads = 4});
  std::vector<float> parameters(model.parameters().float_count());
  model.initialize(1, parameters, {});

  for (std::size_t entry = 0; entry < model.parameters().entries().size(); ++entry) {
    const std::string& name = model.parameters().entries()[entry].name;
    if (name.ends_with("bias") || name.ends_with("gamma") || name.ends_with("beta")) continue;
    const bool ends_half = name.ends_with("mlp.c_proj/kernel") || name.ends_with("output_dense/kernel");
    double squares = 0;
    const std::span<const float> numbers = model.parameters().view(std::span<const float>(parameters), entry);
    for (const float number : numbers) squares += static_cast<double>(number) * number;
    const double deviation = std::sqrt(squares / static_cast<double>(numbers.size()));
    // The deviation of n draws is off by 1 / sqrt(2 n) of itself; here n is 1024 or more, and six times that is
    // allowed.
    EXPECT_NEAR(deviation, ends_half ? 0.005 : 0.02, (ends_half ? 0.005 : 0.02) * 6 / std::sqrt(2 * 1024.0)) << name;
  }
}

TEST(Gpt2, LearnsWhatFollows) {
  Gpt2Options options = kSmallGpt2;
  options.embedding_dropout = options.attention_dropout = options.residual_dropout = 0;
  // Chance has 1.9.
  EXPECT_LT(loss_after_training(gpt2(options), 8, 7), 0.2);
}

// Bits of a step do not depend on it, dropouts included.
TEST(Gpt2, HasTheSameWeightsWhereBlocksAreRecomputed) {
  Gpt2Options options = kSmallGpt2;
  Model kept = gpt2(options);
  options.recomputes = true;
  Model recomputed = gpt2(options);
  loss_after_training(kept, 8, 7);
  loss_after_training(recomputed, 8, 7);

  EXPECT_TRUE(std::ranges::equal(kept.parameter_values(), recomputed.parameter_values()));
  EXPECT_LT(recomputed.training_memory(64).arrays, kept.training_memory(64).arrays);
}

TEST(Gpt2, GoesThroughAFile) {
  const Model model = gpt2(kSmallGpt2);

  EXPECT_EQ(Model::from_graph(model.graph()).graph(), model.graph());
}

// A loss of probabilities trained a model whose scores come from its table of words.
TEST(Gpt2, EndsWithScoresWhateverMakesThem) {
  for (const bool tied : {true, false}) {
    Gpt2Options options = kSmallGpt2;
    options.tied_output = tied;
    EXPECT_EQ(gpt2(options).output_activation(), Activation::linear) << tied;
  }
}

TEST(Gpt2, SaysWhichOptionItCannotMeet) {
  EXPECT_THAT(refusal([] { gpt2({.width = 100}); }), HasSubstr("that its 12 heads divide, not 100; take 96 or 108"));
  EXPECT_THAT(refusal([] { gpt2({.width = 5}); }), HasSubstr("take 12 or 24"));
  EXPECT_THAT(refusal([] { gpt2({.vocabulary = 0}); }), HasSubstr("gpt2() needs a vocabulary from 1"));
  EXPECT_THAT(refusal([] { gpt2({.heads = 0}); }), HasSubstr("gpt2() needs a number of heads from 1"));
  EXPECT_THAT(refusal([] { gpt2({.layers = 0}); }), HasSubstr("gpt2() needs a number of layers from 1"));
  EXPECT_THAT(refusal([] { gpt2({.positions = 8, .length = 9}); }), HasSubstr("8 positions for samples of 9 ids"));
  EXPECT_THAT(refusal([] { gpt2({.length = -1}); }), HasSubstr("gpt2() needs a length"));
  EXPECT_THAT(refusal([] { gpt2({.residual_dropout = 1}); }), HasSubstr("gpt2()"));
}

}  // namespace
}  // namespace holdfast
