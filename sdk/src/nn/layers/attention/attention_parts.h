#pragma once

// What attention layers share: their inputs, masks and dropout.

#include <span>

#include "holdfast/nn/layer_builder.h"
#include "nn/graph/value_node.h"

namespace holdfast {

// Which inputs follow query, value and key.
struct AttentionMasks {
  bool has_attention_mask = false;
  bool has_padding_mask = false;
};

struct AttentionInputs {
  Value query;  // [queries, width]
  Value value;  // [keys, width]
  Value key;
  MaybeValue mask;  // all masks in one
};

// One value is query, value and key; of two values the second is both value and key. Throws Error{invalid_argument} for
// another number of inputs, and for values that are not [steps, width] with as many values as keys.
AttentionInputs attention_inputs(std::span<const Value> inputs, const AttentionMasks& masks);

// The shares after dropout, which only training has.
Value dropped_shares(LayerBuilder& builder, const Value& shares, float rate);

// Throws Error{invalid_argument}, naming the layer class, unless a rate is in [0, 1) and a window is not negative.
void check_attention(std::string_view kind, float dropout, std::int64_t window);

}  // namespace holdfast
