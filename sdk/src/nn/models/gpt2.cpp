// Names and order of the layers are those of the published weights, so that a program which copies weights needs a rule
// for each array and no table. Attention is a MultiHeadAttention and not c_attn, a matrix for query, key and value: its
// products read heads where the projections left them, and files for Keras keep it. docs/decisions/layers.md

#include <fmt/format.h>

#include <cmath>

#include "holdfast/base/error.h"
#include "holdfast/nn/dense.h"
#include "holdfast/nn/embedding.h"
#include "holdfast/nn/functions.h"
#include "holdfast/nn/layer_normalization.h"
#include "holdfast/nn/models.h"
#include "holdfast/nn/multi_head_attention.h"
#include "holdfast/nn/position_embedding.h"
#include "holdfast/nn/recompute.h"
#include "nn/layers/noise/noise.h"
#include "nn/models/model_options.h"
#include "nn/operations/checks.h"

namespace holdfast {
namespace {

constexpr float kGpt2Deviation = 0.02F;  // "initializer_range" of the published models

void check_gpt2(const Gpt2Options& options, std::int64_t length) {
  check_extent("gpt2()", "a vocabulary", options.vocabulary);
  check_extent("gpt2()", "a number of positions", options.positions);
  check_extent("gpt2()", "a length", length);
  check_extent("gpt2()", "a number of layers", options.layers);
  check_heads("gpt2()", options.width, options.heads);
  check_rate("gpt2()", options.embedding_dropout);
  check_rate("gpt2()", options.attention_dropout);
  check_rate("gpt2()", options.residual_dropout);
  if (length <= options.positions) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("gpt2() has {} positions for samples of {} ids; give it more positions or shorter samples",
                          options.positions, length));
}

Value gpt2_normalized(const Value& x, const std::string& name) {
  // Published weights were trained with this epsilon; the layer's default is Keras's 1e-3.
  return LayerNormalization{{.epsilon = 1e-5F, .name = name}}(x);
}

Value gpt2_block(const Value& x, const Gpt2Options& options, const std::string& name) {
  const Initializer begin = Initializer::normal(kGpt2Deviation);
  // Each block adds twice to what goes through all of them; without this, the sum would grow with the layers.
  const Initializer last = Initializer::normal(kGpt2Deviation / std::sqrt(2.0F * static_cast<float>(options.layers)));
  const MultiHeadAttention attention{options.heads,
                                     options.width / options.heads,
                                     {.dropout = options.attention_dropout,
                                      .use_causal_mask = true,
                                      .kernel_initializer = begin,
                                      .output_initializer = last,
                                      .name = name + ".attn"}};
  // Four times the width in all published sizes, so it is not an option.
  const Dense wide{
      4 * options.width,
      {.activation = ActivationFunction::gelu_tanh(), .kernel_initializer = begin, .name = name + ".mlp.c_fc"}};
  const Dense narrow{options.width, {.kernel_initializer = last, .name = name + ".mlp.c_proj"}};

  const Value attended = attention(gpt2_normalized(x, name + ".ln_1"));
  const Value middle = x + dropped_out(attended, options.residual_dropout, name + ".attn.resid_dropout");
  const Value computed = narrow(wide(gpt2_normalized(middle, name + ".ln_2")));
  return middle + dropped_out(computed, options.residual_dropout, name + ".mlp.dropout");
}

}  // namespace

Model gpt2(const Gpt2Options& options) {
  const std::int64_t length = options.length == 0 ? options.positions : options.length;
  check_gpt2(options, length);
  const Initializer begin = Initializer::normal(kGpt2Deviation);
  const ReversibleEmbedding tokens{options.vocabulary, options.width, {.initializer = begin, .name = "wte"}};
  const PositionEmbedding positions{options.positions, {.initializer = begin, .name = "wpe"}};

  const Value ids = input({length}, {.dtype = DType::i32, .name = "ids"});
  const Value words = tokens(ids);
  // positions() reads only the shape of its input: each sample gets the same vectors, and they are added to the words.
  Value x = dropped_out(words + positions(words), options.embedding_dropout, "drop");
  for (std::int64_t block = 0; block < options.layers; ++block) {
    // Each block is a segment of its own, so only what goes from block to block is kept for the backward pass.
    x = recompute(options.recomputes, [&] { return gpt2_block(x, options, fmt::format("h.{}", block)); });
  }
  x = gpt2_normalized(x, "ln_f");
  if (options.tied_output) return Model(ids, tokens.reverse(x));
  const Dense head{options.vocabulary, {.use_bias = false, .kernel_initializer = begin, .name = "lm_head"}};
  return Model(ids, head(x));
}

}  // namespace holdfast
