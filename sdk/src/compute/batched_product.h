#pragma once

// Products of many matrices at once, which lie somewhere in larger arrays: those of attention, which has one for each
// sample and head, and those of a step of a recurrent layer. Matrices are described by strides, so that no array has to
// be copied into another order first.

#include <cstddef>
#include <cstdint>

namespace holdfast::compute {

// Samples, heads and two more. Neighbouring axes that need not be told apart are joined by the caller.
inline constexpr std::size_t kMaximumBatchAxes = 4;

// Element [b..., row, column] is at the sum of all indices times their strides.
struct MatrixPlaces {
  std::int64_t batch[kMaximumBatchAxes]{};  // 0: the same matrix for each index
  std::int64_t row = 1;
  std::int64_t column = 1;
};

// result[b..., i, j] = sum over k of left[b..., i, k] right[b..., k, j]. No two elements of the result share a place,
// and its columns lie side by side (a stride of 1).
struct BatchedProductShape {
  std::size_t batch_axes = 0;
  std::int64_t batch[kMaximumBatchAxes]{};
  std::int64_t rows = 1;
  std::int64_t inner = 1;
  std::int64_t columns = 1;
  MatrixPlaces left;    // [rows, inner]
  MatrixPlaces right;   // [inner, columns]
  MatrixPlaces result;  // [rows, columns]
};

// Keeps nothing between two runs. The arrays do not overlap.
class BatchedProductOperation {
 public:
  virtual ~BatchedProductOperation() = default;
  virtual void run(const float* left, const float* right, float* result) = 0;
};

}  // namespace holdfast::compute
