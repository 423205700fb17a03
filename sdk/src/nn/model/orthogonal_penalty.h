#pragma once

// The penalty of Regularizer::orthogonal(), for one matrix.

#include <cstddef>
#include <span>
#include <vector>

#include "holdfast/core/shape.h"
#include "holdfast/nn/regularizer.h"

namespace holdfast {

// With lines u_i of length 1, the penalty is factor / pairs times the sum of |u_i u_j| over all i < j, where pairs is
// n (n - 1) / 2. All is computed in double, in the order of the lines.
class OrthogonalPenalty {
 public:
  // `weights` is a matrix of this shape, row-major.
  OrthogonalPenalty(const Regularizer& regularizer, const Shape& shape, std::span<const float> weights);

  double value() const { return value_; }
  // Adds the gradient to an array of the shape of the matrix.
  void add_gradient(std::span<float> gradient) const;

 private:
  std::span<const double> line(std::size_t i) const { return std::span(lines_).subspan(i * length_, length_); }
  std::size_t place(std::size_t i, std::size_t element) const;
  void add_products(double scale);

  bool is_of_rows_ = true;
  std::size_t count_ = 0;           // of lines
  std::size_t length_ = 0;          // of each
  std::vector<double> lines_{};     // [count, length], each divided by its norm
  std::vector<double> inverses_{};  // of the norms
  std::vector<double> slopes_{};    // [count, length]: the gradient by the divided lines
  double value_ = 0;
};

}  // namespace holdfast
