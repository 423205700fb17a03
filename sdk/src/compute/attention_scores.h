#pragma once

// The softmax of an attention: scores of queries and keys become the shares that a query takes of each value.

#include <cstdint>

#include "core/host_device.h"

namespace holdfast::compute {

// Scores [samples, heads, queries, keys]. A masked key has no share. A query whose keys are all masked has none at all:
// its shares are zeros.
struct AttentionScores {
  std::int64_t samples = 1;
  std::int64_t heads = 1;
  std::int64_t queries = 1;
  std::int64_t keys = 1;
  float scale = 1;          // scores are multiplied by it first
  bool is_causal = false;   // query i takes keys 0 to i
  std::int64_t window = 0;  // above 0: query i takes the keys j with |i - j| < window
  // The mask has a number for each key, 0 where it is masked. Distances between its rows: 0 repeats a row.
  std::int64_t mask_of_sample = 0;
  std::int64_t mask_of_query = 0;

  HOLDFAST_HOST_DEVICE std::int64_t rows() const { return samples * heads * queries; }
  HOLDFAST_HOST_DEVICE std::int64_t query(std::int64_t row) const { return row % queries; }
  // The keys of a row that causality and window leave: from first() to before end().
  HOLDFAST_HOST_DEVICE std::int64_t first(std::int64_t row) const {
    const std::int64_t begin = window > 0 ? query(row) - window + 1 : 0;
    return begin < 0 ? 0 : begin < keys ? begin : keys;
  }
  HOLDFAST_HOST_DEVICE std::int64_t end(std::int64_t row) const {
    std::int64_t end = keys;
    if (is_causal && query(row) + 1 < end) end = query(row) + 1;
    if (window > 0 && query(row) + window < end) end = query(row) + window;
    // Empty where all keys come before the window.
    return end < first(row) ? first(row) : end;
  }
  // Where the mask of a row begins.
  HOLDFAST_HOST_DEVICE std::int64_t mask(std::int64_t row) const {
    return row / (heads * queries) * mask_of_sample + query(row) * mask_of_query;
  }
};

}  // namespace holdfast::compute
