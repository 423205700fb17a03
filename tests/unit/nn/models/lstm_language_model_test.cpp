#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/nn/dense.h"
#include "holdfast/nn/dropout.h"
#include "holdfast/nn/embedding.h"
#include "holdfast/nn/functions.h"
#include "holdfast/nn/models.h"
#include "holdfast/nn/multi_head_attention.h"
#include "holdfast/nn/recompute.h"
#include "holdfast/nn/recurrent_layers.h"
#include "unit/nn/models/support/language.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

constexpr LstmLanguageModelOptions kSmallLstm = {.vocabulary = 5, .length = 6, .width = 8, .units = 12};

// A table, four gates of each LSTM with a kernel, a recurrent kernel and a bias, and the scores.
TEST(LstmLanguageModel, HasTheParametersOfItsLayers) {
  EXPECT_EQ(lstm_language_model(kSmallLstm).parameters().element_count(),
            static_cast<std::size_t>(5 * 8 + 4 * 12 * (8 + 12 + 1) + 4 * 12 * (12 + 12 + 1) + 12 * 5 + 5));
}

TEST(LstmLanguageModel, HasOneTableForIdsAndScoresWhereAsked) {
  const Model model = lstm_language_model(
      {.vocabulary = 5, .length = 6, .width = 8, .units = 8, .layers = 1, .dropout = 0.5F, .tied_output = true});

  EXPECT_EQ(model.parameters().element_count(), static_cast<std::size_t>(5 * 8 + 4 * 8 * (8 + 8 + 1)));
  EXPECT_EQ(Model::from_graph(model.graph()).graph(), model.graph());
}

TEST(LstmLanguageModel, HasScoresThatDependOnNoLaterId) {
  expect_causal(lstm_language_model(kSmallLstm), 6, 5);
}

TEST(LstmLanguageModel, LearnsWhatFollows) {
  // Chance has 1.6.
  EXPECT_LT(loss_after_training(lstm_language_model(kSmallLstm), 6, 5), 0.2);
}

// Bits of a step do not depend on it, dropouts included.
TEST(LstmLanguageModel, HasTheSameWeightsIfPartsOfItAreRecomputed) {
  const auto trained = [](bool recomputes) {
    const Value ids = input({6}, {.dtype = DType::i32});
    const Value words = Embedding{5, 8}(ids);
    const Value states = recompute(recomputes, [&] {
      return LSTM{12, {.return_sequences = true, .dropout = 0.25F}}(Dropout{0.25F}(words));
    });
    const GroupQueryAttention attention{
        6, 2, 1, {.dropout = 0.25F, .use_causal_mask = true, .rotary = RotaryEmbeddingOptions{}}};
    const Value seen = recompute(recomputes, [&] { return states + attention(states); });
    Model model(ids, Dense{5}(seen));
    loss_after_training(model, 6, 5);
    return std::vector<float>(model.parameter_values().begin(), model.parameter_values().end());
  };

  EXPECT_EQ(trained(true), trained(false));
}

TEST(LstmLanguageModel, SaysWhichOptionItCannotMeet) {
  EXPECT_THAT(refusal([] { lstm_language_model({.length = 3}); }),
              HasSubstr("lstm_language_model() needs a vocabulary from 1"));
  EXPECT_THAT(refusal([] { lstm_language_model({.vocabulary = 3}); }),
              HasSubstr("lstm_language_model() needs a length from 1"));
  EXPECT_THAT(refusal([] { lstm_language_model({.vocabulary = 3, .length = 3, .layers = 0}); }),
              HasSubstr("a number of layers"));
  EXPECT_THAT(refusal([] { lstm_language_model({.vocabulary = 3, .length = 3, .tied_output = true}); }),
              HasSubstr("as many units as the width of its table, not 512 and 256"));
}

}  // namespace
}  // namespace holdfast
