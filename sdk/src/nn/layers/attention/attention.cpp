// Both layers are functions of values around the softmax of attentions, so that their gradients follow.
// docs/decisions/layers.md

#include "holdfast/nn/attention.h"

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"
#include "holdfast/nn/functions.h"
#include "holdfast/nn/layer_builder.h"
#include "nn/graph/config.h"
#include "nn/layers/attention/attention_parts.h"
#include "nn/operations/products/attention_shares.h"

namespace holdfast {

namespace {

constexpr const char* kConcat = "concat";

using Extents = std::vector<std::int64_t>;

// Both must have the same width, since they are compared element by element.
std::int64_t common_width(const AttentionInputs& given) {
  const std::int64_t width = given.query.shape()[1];
  if (given.key.shape()[1] == width) return width;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("it compares queries of width {} with keys of width {}; make them equal by a Dense layer",
                          width, given.key.shape()[1]));
}

// The sum of each pair: [queries, 1, width] and [1, keys, width] are broadcast. The result [queries, keys, width] is
// the largest array of these layers, which dot products do without.
Value pairs(const AttentionInputs& given, std::int64_t width) {
  return reshape(given.query, Extents{given.query.shape()[0], 1, width}) +
         reshape(given.key, Extents{1, given.key.shape()[0], width});
}

// `options` are those of one of the two layers.
std::vector<Value> attended(LayerBuilder& builder, const AttentionInputs& given, const Value& scores,
                            const auto& options) {
  // The operation takes several heads; these layers have one.
  const Extents heads = {1, given.query.shape()[0], given.key.shape()[0]};
  const Value shares = attention_shares(reshape(scores, heads), given.mask, {.is_causal = options.use_causal_mask});
  const Value flat = reshape(dropped_shares(builder, shares, options.dropout), Extents{heads[1], heads[2]});
  const Value output = einsum("qk,kd->qd", flat, given.value);
  // The shares after their dropout, as Keras returns them. Its MultiHeadAttention returns those before, and so does
  // ours.
  return options.return_attention_scores ? std::vector<Value>{output, flat} : std::vector<Value>{output};
}

// Keras has the mask as an argument of a call. A file of Holdfast has no arguments of calls, so an option stands for
// it.
void write_shared_options(ConfigWriter& config, const auto& options) {
  config.boolean("use_scale", options.use_scale);
  config.number("dropout", options.dropout);
  config.boolean("use_causal_mask", options.use_causal_mask);
  config.boolean("padding_mask", options.takes_padding_mask);
  config.boolean("return_attention_scores", options.return_attention_scores);
}

void read_shared_options(ConfigReader& config, auto& options) {
  options.use_scale = config.boolean("use_scale");
  options.dropout = config.number("dropout");
  options.use_causal_mask = config.boolean("use_causal_mask");
  options.takes_padding_mask = config.boolean("padding_mask");
  options.return_attention_scores = config.boolean("return_attention_scores");
}

}  // namespace

Attention::Attention(const AttentionOptions& options) : LayerOf(options.name), options_(options) {
  check_attention("Attention", options.dropout, 0);
}

std::vector<Value> Attention::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  const AttentionInputs given = attention_inputs(inputs, {.has_padding_mask = options_.takes_padding_mask});
  const std::int64_t width = common_width(given);
  MaybeValue scale;
  if (options_.use_scale) scale = builder.parameter("scale", {1}, Initializer::ones());
  if (options_.score_mode == ScoreMode::dot) {
    const Value scores = einsum("qd,kd->qk", given.query, given.key);
    return attended(builder, given, scale ? scores * *scale : scores, options_);
  }
  const Value weight = builder.parameter("concat_score_weight", {1}, Initializer::ones());
  const Value sums = pairs(given, width);
  return attended(builder, given, weight * sum(tanh(scale ? *scale * sums : sums), {-1}), options_);
}

void Attention::write_config(ConfigWriter& config) const {
  config.text("score_mode", options_.score_mode == ScoreMode::dot ? "dot" : kConcat);
  write_shared_options(config, options_);
}

std::shared_ptr<const Layer> Attention::from_config(const std::string& name, ConfigReader& config) {
  const std::string mode = config.text("score_mode");
  if (mode != "dot" && mode != kConcat) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("\"score_mode\" is \"dot\" or \"{}\", not {}", kConcat, quoted_text(mode, 100)));
  }
  AttentionOptions options = {.score_mode = mode == kConcat ? ScoreMode::concat : ScoreMode::dot, .name = name};
  read_shared_options(config, options);
  return std::make_shared<const Attention>(options);
}

AdditiveAttention::AdditiveAttention(const AdditiveAttentionOptions& options)
    : LayerOf(options.name), options_(options) {
  check_attention("AdditiveAttention", options.dropout, 0);
}

std::vector<Value> AdditiveAttention::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  const AttentionInputs given = attention_inputs(inputs, {.has_padding_mask = options_.takes_padding_mask});
  const std::int64_t width = common_width(given);
  const Value compared = tanh(pairs(given, width));
  if (!options_.use_scale) return attended(builder, given, sum(compared, {-1}), options_);
  // Keras takes the fans of a vector from its length.
  const Value scale = builder.parameter("scale", {width}, Initializer::glorot_uniform(), {.in = width, .out = width});
  return attended(builder, given, sum(scale * compared, {-1}), options_);
}

void AdditiveAttention::write_config(ConfigWriter& config) const {
  write_shared_options(config, options_);
}

std::shared_ptr<const Layer> AdditiveAttention::from_config(const std::string& name, ConfigReader& config) {
  AdditiveAttentionOptions options = {.name = name};
  read_shared_options(config, options);
  return std::make_shared<const AdditiveAttention>(options);
}

}  // namespace holdfast
