#pragma once

// Attention with several heads (Vaswani et al., "Attention Is All You Need", 2017; so keras.layers.MultiHeadAttention
// and GroupQueryAttention): each query becomes a mean of values, weighted by how well the query fits the keys.
//
//   const MultiHeadAttention attention{8, 64, {.dropout = 0.1F, .use_causal_mask = true}};
//   const Value y = attention(x);                    // self-attention, x [steps, width]: [steps, width]
//   const Value z = attention(query, value);         // of another sequence: [queries, width] of the query
//   const Value w = attention(query, value, key);    // whose keys are of a third value
//
// For each head, with the projections q, k, v of query, key and value:
//
//   output = softmax(q k^T / sqrt(key_dim)) v      scores and shares [queries, keys], output [queries, value_dim]
//
// and the outputs of all heads are projected together to the width of the query. Keys may be masked: by causality,
// where query i takes keys 0 to i alone; by a window, where |i - j| is below `sliding_window`; and by inputs of the
// model, which are 0 where a key is masked. A query that has no key gives zeros before the last projection.
//
//   const Value is_word = input({128}, {.dtype = DType::boolean, .name = "is_word"});
//   const MultiHeadAttention padded{8, 64, {.takes_padding_mask = true}};
//   const Value y = padded(x, is_word);              // is_word [keys] comes after query, value and key
//
// A block of Llama turns queries and keys by their position instead of adding positions to its input:
//
//   const GroupQueryAttention llama{
//       64, 8, 2, {.use_bias = false, .use_causal_mask = true, .rotary = RotaryEmbeddingOptions{}}};
//
// Parameters, in Keras's shapes: query_dense/kernel [width, heads, key_dim], key_dense/kernel, value_dense/kernel
// [width, heads, value_dim], output_dense/kernel [heads, value_dim, width], and with a bias query_dense/bias [heads,
// key_dim] and so on, each after its kernel.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/nn/constraint.h"
#include "holdfast/nn/layer.h"
#include "holdfast/nn/position_embedding.h"
#include "holdfast/nn/regularizer.h"

namespace holdfast {

class ConfigReader;

// The defaults of Keras, which has causality and masks as arguments of a call.
struct MultiHeadAttentionOptions {
  std::int64_t value_dim = 0;       // of a head of a MultiHeadAttention; 0: that of the keys
  float dropout = 0;                // the share of shares that training sets to zero; its draws are as those of Dropout
  bool use_bias = true;             // whether projections add one
  bool use_causal_mask = false;     // query i takes keys 0 to i
  std::int64_t sliding_window = 0;  // above 0: query i takes the keys j with |i - j| below it
  // Whether a mask [queries, keys] is the input after query, value and key.
  bool takes_attention_mask = false;
  // Whether a mask [keys] is the input after these.
  bool takes_padding_mask = false;
  // Turns queries and keys by their position before their product, as Llama does: see RotaryEmbedding. The position of
  // query i and of key i is i. The name in it is not used, and the width of a head must be even. Buffers:
  // rotary/cosine and rotary/sine, [steps, width / 2]. Keras's layers have no such option.
  std::optional<RotaryEmbeddingOptions> rotary = {};
  // Whether the shares are a second output, [heads, queries, keys]: in training those before dropout.
  bool return_attention_scores = false;
  // Where the weights of all projections begin; see initializer.h.
  Initializer kernel_initializer = Initializer::glorot_uniform();
  Initializer bias_initializer = Initializer::zeros();
  // Where the kernel of the last projection begins. Empty: as the others. Keras has no such option, and needs none to
  // read the weights.
  std::optional<Initializer> output_initializer = {};
  // Penalties on their size, none by default; see regularizer.h.
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  // Bounds, none by default; see constraint.h.
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
};

class MultiHeadAttention final : public LayerOf<MultiHeadAttention> {
 public:
  // `key_dim` is the width of a head. Throws Error{invalid_argument} unless both are in [1, Layer::kMaximumExtent], and
  // for a rate of dropout that is not in [0, 1).
  MultiHeadAttention(std::int64_t num_heads, std::int64_t key_dim, const MultiHeadAttentionOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "MultiHeadAttention"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  std::int64_t num_heads_;
  std::int64_t key_dim_;
  MultiHeadAttentionOptions options_;
};

// The same with fewer heads of keys and values than of queries (Ainslie et al., "GQA", 2023): neighbouring heads of
// queries share one. With one head of keys it is multi-query attention (Shazeer, 2019).
//
//   const GroupQueryAttention attention{64, 8, 2, {.use_causal_mask = true}};   // 8 heads of 64, in 2 groups of 4
//
// Parameters as above, with [width, num_key_value_heads, head_dim] for keys and values.
class GroupQueryAttention final : public LayerOf<GroupQueryAttention> {
 public:
  // Throws Error{invalid_argument} as above, unless the heads of queries are a multiple of the others, and for a
  // value_dim, which is that of the keys here.
  GroupQueryAttention(std::int64_t head_dim, std::int64_t num_query_heads, std::int64_t num_key_value_heads,
                      const MultiHeadAttentionOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "GroupQueryAttention"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  std::int64_t head_dim_;
  std::int64_t num_query_heads_;
  std::int64_t num_key_value_heads_;
  MultiHeadAttentionOptions options_;
};

}  // namespace holdfast
