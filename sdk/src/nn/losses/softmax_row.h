#pragma once

// The parts of a numerically stable softmax that the cross-entropies share, and their rule for probabilities.

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "compute/arithmetic/crossentropy.h"
#include "holdfast/core/shape.h"

namespace holdfast {

using compute::clip_probability;
using compute::ClippedProbability;
using compute::SoftmaxRow;

// Where `exponentials` is not empty it gets exp(row[c] - largest).
inline SoftmaxRow softmax_row(std::span<const float> row, std::span<float> exponentials) {
  const float largest = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (std::size_t c = 0; c < row.size(); ++c) {
    const float exponential = compute::softmax_exponential(row[c], largest);
    sum += exponential;
    if (!exponentials.empty()) exponentials[c] = exponential;
  }
  return {.largest = largest, .sum = sum, .log_sum = std::log(sum)};
}

// Throws Error{invalid_argument} unless `output` has one axis with at least one class. The sentence
// begins with `loss`.
void check_is_row_of_classes(const std::string& loss, const Shape& output);

}  // namespace holdfast
