#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "holdfast/core/random.h"
#include "holdfast/nn/models.h"
#include "unit/nn/models/support/language.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

constexpr EncoderDecoderOptions kSmallPair = {.source_vocabulary = 6,
                                              .target_vocabulary = 7,
                                              .source_length = 5,
                                              .target_length = 4,
                                              .width = 16,
                                              .layers = 1,
                                              .heads = 2,
                                              .dropout = 0};

EncoderDecoderOptions pair_with_padding() {
  EncoderDecoderOptions options = kSmallPair;
  options.padding_id = 0;
  return options;
}

Tensor scores_of_pair(const Model& model, const std::vector<std::int32_t>& source,
                      const std::vector<std::int32_t>& target) {
  return model.predict(std::vector<Tensor>{ids_tensor({1, 5}, source), ids_tensor({1, 4}, target)})[0];
}

TEST(EncoderDecoder, HasTheParametersOfItsLayers) {
  constexpr std::size_t kWidth = 16;
  constexpr std::size_t kNorm = 2 * kWidth;
  constexpr std::size_t kAttention = 4 * (kWidth * kWidth + kWidth) + kNorm;
  constexpr std::size_t kFeedForward = 2 * kWidth * 4 * kWidth + 5 * kWidth + kNorm;

  const Model model = encoder_decoder(kSmallPair);

  EXPECT_EQ(model.parameters().element_count(),
            (6 + 7) * kWidth + 3 * kAttention + 2 * kFeedForward + 2 * kNorm + kWidth * 7 + 7);
  EXPECT_EQ(Model::from_graph(model.graph()).graph(), model.graph());
}

TEST(EncoderDecoder, ReadsTheWholeSourceAndNoLaterIdOfTheTarget) {
  Model model = encoder_decoder(kSmallPair);
  begin_with_draws(model);

  const Tensor before = scores_of_pair(model, {1, 2, 3, 4, 5}, {6, 1, 2, 3});
  const Tensor other_target = scores_of_pair(model, {1, 2, 3, 4, 5}, {6, 1, 2, 4});
  const Tensor other_source = scores_of_pair(model, {1, 2, 3, 4, 1}, {6, 1, 2, 3});

  EXPECT_TRUE(std::equal(before.values().begin(), before.values().begin() + 21, other_target.values().begin()));
  EXPECT_NE(before.values()[21], other_target.values()[21]);
  EXPECT_NE(before.values()[0], other_source.values()[0]);
}

// Ids after the padding are never seen, whatever they are: here the first one is padding and the others are not.
TEST(EncoderDecoder, DoesNotAttendToPadding) {
  const auto scores = [](const EncoderDecoderOptions& options, float begin) {
    Model model = encoder_decoder(options);
    std::vector<float> parameters(model.parameters().float_count());
    std::vector<float> buffers(model.buffers().float_count());
    model.initialize(1, parameters, buffers);
    // Another vector for id 0, which is row 0 of the table of the source.
    for (std::size_t entry = 0; entry < model.parameters().entries().size(); ++entry) {
      if (model.parameters().entries()[entry].name != "source_words/embeddings") continue;
      std::ranges::fill(model.parameters().view(std::span<float>(parameters), entry).first(16), begin);
    }
    model.set_weights(std::move(parameters), std::move(buffers));
    return scores_of_pair(model, {1, 2, 3, 0, 0}, {6, 1, 2, 3}).values();
  };

  EXPECT_EQ(scores(pair_with_padding(), 1), scores(pair_with_padding(), -2));
  EXPECT_NE(scores(kSmallPair, 1), scores(kSmallPair, -2));
}

// Sources of four ids and padding, and targets that are the sources backwards.
Dataset reversed_words() {
  constexpr std::int64_t kSamples = 256;
  std::vector<std::int32_t> sources;
  std::vector<std::int32_t> targets;
  std::vector<float> next;
  for (std::int64_t sample = 0; sample < kSamples; ++sample) {
    Random random(1, Purpose::synthetic_data, 0, static_cast<std::uint64_t>(sample));
    std::vector<std::int32_t> word;
    for (int i = 0; i < 4; ++i) word.push_back(static_cast<std::int32_t>(1 + random.below(4)));
    sources.insert(sources.end(), word.begin(), word.end());
    sources.push_back(0);
    targets.push_back(6);
    targets.insert(targets.end(), word.rbegin(), word.rend() - 1);
    next.insert(next.end(), word.rbegin(), word.rend());
  }
  return from_tensors({{"source", ids_tensor({kSamples, 5}, sources)}, {"target", ids_tensor({kSamples, 4}, targets)}},
                      {{"scores", Tensor({kSamples, 4}, std::move(next))}});
}

// Chance has a loss of 1.4; without attention to the source nothing is known of it.
TEST(EncoderDecoder, LearnsToReverse) {
  Replica replica = Replica::alone({.seed = 1, .shards = 2});
  Trainer trainer(replica, encoder_decoder(pair_with_padding()), Adam(0.01F),
                  SparseCategoricalCrossentropy({.from_logits = true}));

  const FitResult fit = trainer.fit(reversed_words().shuffle().batch(32), {.epochs = 25});

  EXPECT_LT(fit.results.at("loss"), 0.1);
}

// A segment of the user's that reads another sequence, with a mask and shares that are dropped.
TEST(EncoderDecoder, HasTheSameWeightsWhereAttentionToTheSourceIsRecomputed) {
  const auto trained = [](bool recomputes) {
    const Value source = input({5}, {.dtype = DType::i32, .name = "source"});
    const Value target = input({4}, {.dtype = DType::i32, .name = "target"});
    const Value mask = minimum(cast(source, DType::f32), 1);
    const Value read = Embedding{6, 16}(source);
    const MultiHeadAttention attention{2, 8, {.dropout = 0.25F, .takes_padding_mask = true}};
    const Value written = Embedding{7, 16}(target);
    const Value seen = recompute(recomputes, [&] { return written + Dropout{0.25F}(attention(written, read, mask)); });
    Replica replica = Replica::alone({.seed = 1, .shards = 2});
    Trainer trainer(replica, Model({source, target}, {Dense{7, {.name = "scores"}}(seen)}), Adam(0.01F),
                    SparseCategoricalCrossentropy({.from_logits = true}));
    trainer.fit(reversed_words().shuffle().batch(32), {.epochs = 2});
    return trainer.weights_digest();
  };

  EXPECT_EQ(trained(true), trained(false));
}

TEST(EncoderDecoder, SaysWhichOptionItCannotMeet) {
  const auto refused = [](auto&& change) {
    EncoderDecoderOptions options = kSmallPair;
    change(options);
    return refusal([&] { encoder_decoder(options); });
  };

  EXPECT_THAT(refusal([] { encoder_decoder({}); }), HasSubstr("encoder_decoder() needs a source_vocabulary from 1"));
  EXPECT_THAT(refused([](auto& options) { options.target_length = 0; }), HasSubstr("a target_length from 1"));
  EXPECT_THAT(refused([](auto& options) { options.heads = 3; }), HasSubstr("3 heads divide, not 16; take 15 or 18"));
  EXPECT_THAT(refused([](auto& options) { options.padding_id = 6; }), HasSubstr("below its source_vocabulary"));
  EXPECT_THAT(refused([](auto& options) { options.feed_forward = -1; }), HasSubstr("a feed_forward from 1"));
}

}  // namespace
}  // namespace holdfast
