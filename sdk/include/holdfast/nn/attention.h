#pragma once

// Attention without projections (so keras.layers.Attention and AdditiveAttention): each query becomes a mean of values,
// weighted by how well the query fits the keys. MultiHeadAttention (multi_head_attention.h) has projections and heads.
//
//   const Value y = Attention{}(query, value);                // [queries, width] and [keys, width]: [queries, width]
//   const Value z = AdditiveAttention{}(query, value, key);
//
// With the shares of a query, softmax over the keys of its scores, the output is the sum of share times value. Scores
// of a query q and a key k are, with a trained number `scale` where the options ask for one,
//
//   Attention, dot       scale * sum of q k                              Luong et al., 2015
//   Attention, concat    concat_score_weight * sum of tanh(scale * (q + k))
//   AdditiveAttention    sum of scale * tanh(q + k), with a scale for each element     Bahdanau et al., 2015
//
// The last two compute a vector for each pair of query and key, so they are meant for short sequences.
//
// Parameters: scale, [1] of Attention and [width] of AdditiveAttention, and concat_score_weight, [1].

#include <memory>
#include <string>
#include <vector>

#include "holdfast/nn/layer.h"

namespace holdfast {

class ConfigReader;

// How Attention compares a query and a key.
enum class ScoreMode { dot, concat };

// The defaults of Keras, which has causality and masks as arguments of a call.
struct AttentionOptions {
  bool use_scale = false;                 // whether a trained number multiplies the scores
  ScoreMode score_mode = ScoreMode::dot;  // see ScoreMode
  float dropout = 0;                      // the share of shares that training sets to zero
  bool use_causal_mask = false;           // query i takes keys 0 to i
  bool takes_padding_mask = false;        // whether a mask [keys], 0 where a key is masked, is the last input
  // Whether the shares are a second output, [queries, keys]: in training those after dropout.
  bool return_attention_scores = false;
  std::string name = {};
};

// Compares queries and keys by their product, or as `score_mode` says. See the beginning of this header.
class Attention final : public LayerOf<Attention> {
 public:
  // Throws Error{invalid_argument} for a rate of dropout that is not in [0, 1).
  explicit Attention(const AttentionOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "Attention"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  AttentionOptions options_;
};

// The options of AdditiveAttention, as those of Attention.
struct AdditiveAttentionOptions {
  bool use_scale = true;            // whether each element has a trained factor
  float dropout = 0;                // the share of shares that training sets to zero
  bool use_causal_mask = false;     // query i takes keys 0 to i
  bool takes_padding_mask = false;  // whether a mask [keys], 0 where a key is masked, is the last input
  // Whether the shares are a second output, [queries, keys]: in training those after dropout.
  bool return_attention_scores = false;
  std::string name = {};
};

// Compares queries and keys by tanh of their sum. See the beginning of this header.
class AdditiveAttention final : public LayerOf<AdditiveAttention> {
 public:
  // Throws Error{invalid_argument} for a rate of dropout that is not in [0, 1).
  explicit AdditiveAttention(const AdditiveAttentionOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "AdditiveAttention"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  AdditiveAttentionOptions options_;
};

}  // namespace holdfast
