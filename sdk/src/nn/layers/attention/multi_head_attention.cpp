// Projections are products of matrices whose columns are all heads side by side. The products of heads read these
// columns where they are, so that no array is copied into another order. docs/decisions/layers.md

#include "holdfast/nn/multi_head_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "holdfast/base/error.h"
#include "holdfast/nn/functions.h"
#include "nn/graph/config.h"
#include "nn/layers/attention/attention_parts.h"
#include "nn/layers/positions/rotation.h"
#include "nn/layers/weight_limits.h"
#include "nn/operations/checks.h"
#include "nn/operations/operations.h"
#include "nn/operations/products/attention_shares.h"

namespace holdfast {

namespace {

class Projections {
 public:
  Projections(LayerBuilder& builder, const MultiHeadAttentionOptions& options) : builder_(builder), options_(options) {}

  // [steps, width] becomes [steps, heads, dim].
  Value to_heads(const std::string& name, const Value& x, std::int64_t heads, std::int64_t dim) {
    const std::int64_t steps = x.shape()[0];
    const std::int64_t width = x.shape()[1];
    const Value columns = projected(name, x,
                                    {.kernel_shape = {width, heads, dim},
                                     .bias_shape = {heads, dim},
                                     .fans = {.in = width, .out = heads * dim},
                                     .initializer = options_.kernel_initializer});
    return reshape(columns, std::vector<std::int64_t>{steps, heads, dim});
  }

  // And back: [steps, heads, dim] becomes [steps, width].
  Value from_heads(const Value& x, std::int64_t width) {
    const std::int64_t heads = x.shape()[1];
    const std::int64_t dim = x.shape()[2];
    const Value columns = reshape(x, std::vector<std::int64_t>{x.shape()[0], heads * dim});
    // Without an initializer of its own it has that of the other kernels, as in Keras.
    return projected("output_dense", columns,
                     {.kernel_shape = {heads, dim, width},
                      .bias_shape = {width},
                      .fans = {.in = heads * dim, .out = width},
                      .initializer = options_.output_initializer.value_or(options_.kernel_initializer)});
  }

 private:
  struct Projection {
    Shape kernel_shape;
    Shape bias_shape;
    Fans fans;
    Initializer initializer;  // of the kernel
  };

  Value projected(const std::string& name, const Value& x, const Projection& projection) {
    const Fans& fans = projection.fans;
    const Value kernel =
        limited(builder_, builder_.parameter(name + "/kernel", projection.kernel_shape, projection.initializer, fans),
                options_.kernel_regularizer, options_.kernel_constraint);
    // The parameter keeps Keras's axes, so that weights can be exchanged. Only this view is a matrix.
    const Value matrix = reshape(kernel, std::vector<std::int64_t>{fans.in, fans.out});
    if (!options_.use_bias) return dense(x, matrix, std::nullopt);
    const Value bias =
        limited(builder_, builder_.parameter(name + "/bias", projection.bias_shape, options_.bias_initializer, fans),
                options_.bias_regularizer, options_.bias_constraint);
    return dense(x, matrix, reshape(bias, std::vector<std::int64_t>{fans.out}));
  }

  LayerBuilder& builder_;
  const MultiHeadAttentionOptions& options_;
};

AttentionInputs inputs_of(std::span<const Value> inputs, const MultiHeadAttentionOptions& options) {
  return attention_inputs(
      inputs, {.has_attention_mask = options.takes_attention_mask, .has_padding_mask = options.takes_padding_mask});
}

struct QueriesAndKeys {
  Value queries;
  Value keys;
};

// [steps, heads, dim], turned by their steps if the options say so.
QueriesAndKeys placed(LayerBuilder& builder, const Value& queries, const Value& keys,
                      const MultiHeadAttentionOptions& options) {
  if (!options.rotary) return {queries, keys};
  // Both have one table: position i is that of query i and of key i.
  const RotationTables tables = rotation_tables(builder, "rotary/", std::max(queries.shape()[0], keys.shape()[0]),
                                                keys.shape()[2], *options.rotary);
  // Values stay as they are: positions matter to scores alone.
  return {rotated(queries, tables), rotated(keys, tables)};
}

Value shares_of(const Value& scores, std::int64_t key_dim, const MaybeValue& mask,
                const MultiHeadAttentionOptions& options) {
  return attention_shares(scores, mask,
                          // Vaswani et al., 2017: so the scores of wide heads do not saturate the softmax.
                          {.scale = 1.0F / std::sqrt(static_cast<float>(key_dim)),
                           .is_causal = options.use_causal_mask,
                           .window = options.sliding_window});
}

// The shares before their dropout, as Keras returns them.
std::vector<Value> outputs_of(const Value& output, const Value& shares, const MultiHeadAttentionOptions& options) {
  return options.return_attention_scores ? std::vector<Value>{output, shares} : std::vector<Value>{output};
}

void write_options(ConfigWriter& config, const MultiHeadAttentionOptions& options) {
  config.number("dropout", options.dropout);
  config.boolean("use_bias", options.use_bias);
  // Keras has this and the masks as arguments of a call, and a file of Holdfast has no arguments of calls.
  config.boolean("use_causal_mask", options.use_causal_mask);
  config.integer("sliding_window", options.sliding_window);
  config.boolean("attention_mask", options.takes_attention_mask);
  config.boolean("padding_mask", options.takes_padding_mask);
  config.boolean("return_attention_scores", options.return_attention_scores);
  config.text("kernel_initializer", options.kernel_initializer.name());
  config.text("bias_initializer", options.bias_initializer.name());
  // Files from before there were these options do not have them, and their text must stay.
  if (options.rotary) {
    config.number("rotary_max_wavelength", options.rotary->max_wavelength);
    config.number("rotary_scaling_factor", options.rotary->scaling_factor);
  }
  if (options.output_initializer) config.text("output_initializer", options.output_initializer->name());
  write_limits(config, "kernel", options.kernel_regularizer, options.kernel_constraint);
  write_limits(config, "bias", options.bias_regularizer, options.bias_constraint);
}

void read_options(ConfigReader& config, MultiHeadAttentionOptions& options) {
  options.dropout = config.number("dropout");
  options.use_bias = config.boolean("use_bias");
  options.use_causal_mask = config.boolean("use_causal_mask");
  options.sliding_window = config.integer("sliding_window");
  options.takes_attention_mask = config.boolean("attention_mask");
  options.takes_padding_mask = config.boolean("padding_mask");
  options.return_attention_scores = config.boolean("return_attention_scores");
  options.kernel_initializer = Initializer::from_name(config.text("kernel_initializer"));
  options.bias_initializer = Initializer::from_name(config.text("bias_initializer"));
  if (config.has("rotary_max_wavelength")) {
    const float max_wavelength = config.number("rotary_max_wavelength");
    options.rotary = {.max_wavelength = max_wavelength, .scaling_factor = config.number("rotary_scaling_factor")};
  }
  if (config.has("output_initializer")) {
    options.output_initializer = Initializer::from_name(config.text("output_initializer"));
  }
  options.kernel_regularizer = read_regularizer(config, "kernel_regularizer");
  options.bias_regularizer = read_regularizer(config, "bias_regularizer");
  options.kernel_constraint = read_constraint(config, "kernel_constraint");
  options.bias_constraint = read_constraint(config, "bias_constraint");
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(std::int64_t num_heads, std::int64_t key_dim,
                                       const MultiHeadAttentionOptions& options)
    : LayerOf(options.name), num_heads_(num_heads), key_dim_(key_dim), options_(options) {
  // Files have the width itself, whatever a later default is.
  if (options.value_dim == 0) options_.value_dim = key_dim;
  check_extent("MultiHeadAttention", "a number of heads", num_heads_);
  check_extent("MultiHeadAttention", "a key_dim", key_dim_);
  check_extent("MultiHeadAttention", "a value_dim", options_.value_dim);
  check_attention("MultiHeadAttention", options.dropout, options.sliding_window);
  if (options.rotary) check_rotation("MultiHeadAttention", *options.rotary);
}

std::vector<Value> MultiHeadAttention::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  // A missing key is the value, and a missing value the query (attention_inputs()).
  const AttentionInputs given = inputs_of(inputs, options_);
  Projections projections(builder, options_);
  // One after another: the order of the parameters is that of these calls.
  const Value queries = projections.to_heads("query_dense", given.query, num_heads_, key_dim_);
  const Value keys = projections.to_heads("key_dense", given.key, num_heads_, key_dim_);
  const Value v = projections.to_heads("value_dense", given.value, num_heads_, options_.value_dim);
  const auto [q, k] = placed(builder, queries, keys, options_);
  // Two products for each head and sample, around the softmax of the scores.
  // q and k are steps, h is the head and d a number of it; the samples need no letter.
  const Value shares = shares_of(einsum("qhd,khd->hqk", q, k), key_dim_, given.mask, options_);
  const Value mean = einsum("hqk,khd->qhd", dropped_shares(builder, shares, options_.dropout), v);
  return outputs_of(projections.from_heads(mean, given.query.shape()[1]), shares, options_);
}

void MultiHeadAttention::write_config(ConfigWriter& config) const {
  config.integer("num_heads", num_heads_);
  config.integer("key_dim", key_dim_);
  config.integer("value_dim", options_.value_dim);
  write_options(config, options_);
}

std::shared_ptr<const Layer> MultiHeadAttention::from_config(const std::string& name, ConfigReader& config) {
  const std::int64_t num_heads = config.integer("num_heads");
  const std::int64_t key_dim = config.integer("key_dim");
  MultiHeadAttentionOptions options = {.value_dim = config.integer("value_dim"), .name = name};
  read_options(config, options);
  return std::make_shared<const MultiHeadAttention>(num_heads, key_dim, options);
}

GroupQueryAttention::GroupQueryAttention(std::int64_t head_dim, std::int64_t num_query_heads,
                                         std::int64_t num_key_value_heads, const MultiHeadAttentionOptions& options)
    : LayerOf(options.name),
      head_dim_(head_dim),
      num_query_heads_(num_query_heads),
      num_key_value_heads_(num_key_value_heads),
      options_(options) {
  check_extent("GroupQueryAttention", "a head_dim", head_dim);
  check_extent("GroupQueryAttention", "a number of query heads", num_query_heads);
  check_extent("GroupQueryAttention", "a number of key and value heads", num_key_value_heads);
  check_attention("GroupQueryAttention", options.dropout, options.sliding_window);
  if (options.rotary) check_rotation("GroupQueryAttention", *options.rotary);
  if (options.value_dim != 0) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("GroupQueryAttention has values of the width of its keys, so a value_dim of {} must be left "
                    "out",
                    options.value_dim));
  }
  // check_extent() has refused a divisor of 0.
  if (num_query_heads % num_key_value_heads == 0) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("GroupQueryAttention needs a multiple of its {} heads of keys and values as heads of "
                          "queries, not {}",
                          num_key_value_heads, num_query_heads));
}

std::vector<Value> GroupQueryAttention::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  const AttentionInputs given = inputs_of(inputs, options_);
  Projections projections(builder, options_);
  // In this order, as above.
  const Value of_queries = projections.to_heads("query_dense", given.query, num_query_heads_, head_dim_);
  const Value of_keys = projections.to_heads("key_dense", given.key, num_key_value_heads_, head_dim_);
  const Value v = projections.to_heads("value_dense", given.value, num_key_value_heads_, head_dim_);
  const auto [q, k] = placed(builder, of_queries, of_keys, options_);
  const std::int64_t queries = q.shape()[0];
  const std::int64_t keys = k.shape()[0];
  const std::int64_t group = num_query_heads_ / num_key_value_heads_;
  // Head g of group n is head n * group + g of the queries, as where Keras repeats keys and values.
  const Value grouped = reshape(q, std::vector<std::int64_t>{queries, num_key_value_heads_, group, head_dim_});
  // Keys are not repeated for the heads of a group, which would copy them as often.
  const Value scores = einsum("qngd,knd->ngqk", grouped, k);
  const Value shares = shares_of(reshape(scores, std::vector<std::int64_t>{num_query_heads_, queries, keys}), head_dim_,
                                 given.mask, options_);
  const Value taken = reshape(dropped_shares(builder, shares, options_.dropout),
                              std::vector<std::int64_t>{num_key_value_heads_, group, queries, keys});
  const Value mean =
      reshape(einsum("ngqk,knd->qngd", taken, v), std::vector<std::int64_t>{queries, num_query_heads_, head_dim_});
  return outputs_of(projections.from_heads(mean, given.query.shape()[1]), shares, options_);
}

void GroupQueryAttention::write_config(ConfigWriter& config) const {
  config.integer("head_dim", head_dim_);
  config.integer("num_query_heads", num_query_heads_);
  config.integer("num_key_value_heads", num_key_value_heads_);
  write_options(config, options_);
}

std::shared_ptr<const Layer> GroupQueryAttention::from_config(const std::string& name, ConfigReader& config) {
  const std::int64_t head_dim = config.integer("head_dim");
  const std::int64_t num_query_heads = config.integer("num_query_heads");
  const std::int64_t num_key_value_heads = config.integer("num_key_value_heads");
  MultiHeadAttentionOptions options = {.name = name};
  read_options(config, options);
  return std::make_shared<const GroupQueryAttention>(head_dim, num_query_heads, num_key_value_heads, options);
}

}  // namespace holdfast
