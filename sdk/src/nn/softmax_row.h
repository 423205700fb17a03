#pragma once

// The parts of a numerically stable softmax that the cross-entropies share, and their rule for probabilities.

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "holdfast/core/shape.h"

namespace holdfast {

// log(sum(exp(row))) = largest + log_sum; exp(row[c] - largest) / sum is the softmax and never overflows.
struct SoftmaxRow {
  float largest;
  double sum;      // of exp(row[c] - largest), at least 1
  double log_sum;  // log(sum)
};

// Where `exponentials` is not empty it gets exp(row[c] - largest).
inline SoftmaxRow softmax_row(std::span<const float> row, std::span<float> exponentials) {
  const float largest = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (std::size_t c = 0; c < row.size(); ++c) {
    const float exponential = std::exp(row[c] - largest);
    sum += exponential;
    if (!exponentials.empty()) exponentials[c] = exponential;
  }
  return {.largest = largest, .sum = sum, .log_sum = std::log(sum)};
}

inline constexpr float kProbabilityEpsilon = 1e-7F;

struct ClippedProbability {
  float value;
  bool is_clipped;  // then it has no gradient
};

inline ClippedProbability clip_probability(float p) {
  if (p < kProbabilityEpsilon) return {kProbabilityEpsilon, true};
  if (p > 1.0F - kProbabilityEpsilon) return {1.0F - kProbabilityEpsilon, true};
  return {p, false};
}

// Throws Error{invalid_argument} unless `output` has one axis with at least one class; `loss` names who asks.
void check_is_row_of_classes(const std::string& loss, const Shape& output);

}  // namespace holdfast
