#pragma once

// The parts of a numerically stable softmax that the cross-entropies share, and their rule for probabilities.

#include <cstdint>
#include <span>
#include <string>

#include "compute/arithmetic/crossentropy.h"
#include "compute/cpu/kernels/vector_kernels.h"
#include "holdfast/core/shape.h"

namespace holdfast {

using compute::clip_probability;
using compute::ClippedProbability;
using compute::SoftmaxRow;

// Where `exponentials` is not empty it gets exp(row[c] - largest). `row` has one class at least, and `exponentials` is
// empty or as long.
inline SoftmaxRow softmax_row(std::span<const float> row, std::span<float> exponentials) {
  float* const into = exponentials.empty() ? nullptr : exponentials.data();
  const compute::SoftmaxSums sums =
      compute::vector_kernels().softmax_row(row.data(), static_cast<std::int64_t>(row.size()), into);
  return {.largest = sums.shift, .sum = sums.sum, .log_sum = compute::logarithm_of_sum(sums.sum)};
}

// Throws Error{invalid_argument} unless the last axis of `output` can be classes. The sentence begins with `loss`.
void check_has_classes(const std::string& loss, const Shape& output);
// The axes before the last one: positions, each of which has a row of classes.
std::size_t axes_before_classes(const Shape& output);

}  // namespace holdfast
