#pragma once

// The softmax of an attention, with its masks.

#include "nn/graph/value_node.h"

namespace holdfast {

struct AttentionSharesOptions {
  float scale = 1;          // scores are multiplied by it first
  bool is_causal = false;   // query i takes keys 0 to i
  std::int64_t window = 0;  // above 0: query i takes the keys j with |i - j| < window
};

// Scores [heads, queries, keys] become the share that a query takes of each key. A mask [keys] or [queries, keys] is 0
// where a key is masked. A query all of whose keys are masked has shares of 0. Throws Error{invalid_argument} for a
// mask of another shape.
Value attention_shares(const Value& scores, const MaybeValue& mask, const AttentionSharesOptions& options);

}  // namespace holdfast
