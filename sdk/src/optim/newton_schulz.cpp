// The matrix is kept tall, as the transpose y of the x of the formula: A = y^T y, and x' = a x + B x becomes y' = a y +
// y B, since B is symmetric. The products are those of dense layers, which are fast.

#include "optim/newton_schulz.h"

#include <algorithm>
#include <cmath>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

// In tiles, so that neither of the two matrices is read or written a whole row apart each time.
void transpose(std::span<const float> from, std::int64_t rows, std::int64_t columns, std::span<float> to) {
  constexpr std::int64_t kTile = 16;
  for (std::int64_t first_row = 0; first_row < rows; first_row += kTile) {
    for (std::int64_t first_column = 0; first_column < columns; first_column += kTile) {
      for (std::int64_t row = first_row; row < std::min(rows, first_row + kTile); ++row) {
        for (std::int64_t column = first_column; column < std::min(columns, first_column + kTile); ++column) {
          to[static_cast<std::size_t>(column * rows + row)] = from[static_cast<std::size_t>(row * columns + column)];
        }
      }
    }
  }
}

}  // namespace

NewtonSchulz::NewtonSchulz(std::int64_t rows, std::int64_t columns)
    : is_transposed_(rows < columns),
      longer_(std::max(rows, columns)),
      shorter_(std::min(rows, columns)),
      // A back end of its own: the threads of the model's back end would change the order of sums, and so the bits.
      backend_(compute::make_cpu_backend(1)),
      gram_product_(backend_->dense({.rows = shorter_, .inputs = longer_, .outputs = shorter_, .has_bias = false}, {})),
      square_product_(
          backend_->dense({.rows = shorter_, .inputs = shorter_, .outputs = shorter_, .has_bias = false}, {})),
      tall_product_(backend_->dense({.rows = longer_, .inputs = shorter_, .outputs = shorter_, .has_bias = false}, {})),
      tall_(static_cast<std::size_t>(longer_ * shorter_)),
      other_(tall_.size()),
      gram_(static_cast<std::size_t>(shorter_ * shorter_)),
      polynomial_(gram_.size()) {}

void NewtonSchulz::run(const NewtonSchulzOptions& options, std::span<float> matrix) {
  HOLDFAST_ASSERT(matrix.size() == tall_.size());
  // This norm is at least the largest singular value. So the division brings all singular values into [0, 1], where the
  // polynomial is made for them.
  double squares = 0;
  for (const float element : matrix) squares += static_cast<double>(element) * element;
  // Keras's number, so that a matrix of zeros stays one.
  const auto divisor = static_cast<float>(std::sqrt(squares) + 1e-7);
  for (float& element : matrix) element /= divisor;
  if (is_transposed_) {
    transpose(matrix, shorter_, longer_, tall_);
  } else {
    std::ranges::copy(matrix, tall_.begin());
  }
  for (std::int64_t step = 0; step < options.steps; ++step) iterate(options);
  if (is_transposed_) {
    transpose(tall_, longer_, shorter_, matrix);
  } else {
    std::ranges::copy(tall_, matrix.begin());
  }
}

void NewtonSchulz::iterate(const NewtonSchulzOptions& options) {
  transpose(tall_, longer_, shorter_, other_);
  gram_product_->forward(other_.data(), tall_.data(), nullptr, gram_.data());
  square_product_->forward(gram_.data(), gram_.data(), nullptr, polynomial_.data());
  for (std::size_t i = 0; i < gram_.size(); ++i) polynomial_[i] = options.b * gram_[i] + options.c * polynomial_[i];
  tall_product_->forward(tall_.data(), polynomial_.data(), nullptr, other_.data());
  for (std::size_t i = 0; i < tall_.size(); ++i) tall_[i] = options.a * tall_[i] + other_[i];
}

}  // namespace holdfast
