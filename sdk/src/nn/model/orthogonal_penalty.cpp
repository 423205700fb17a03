// As in Keras, a line is divided by its norm, or multiplied by 1e7 if that is less, so that a line of zeros stays one.
// Then the gradient by a line w with u = w / |w| is (s - u (u s)) / |w|, where s is the gradient by u.

#include "nn/model/orthogonal_penalty.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace holdfast {

// keras.backend.epsilon(), the least norm.
static constexpr double kLeastNorm = 1e-7;

OrthogonalPenalty::OrthogonalPenalty(const Regularizer& regularizer, const Shape& shape, std::span<const float> weights)
    : is_of_rows_(regularizer.lines() == Regularizer::Lines::rows),
      count_(static_cast<std::size_t>(shape[is_of_rows_ ? 0 : 1])),
      length_(static_cast<std::size_t>(shape[is_of_rows_ ? 1 : 0])),
      lines_(weights.size()),
      slopes_(weights.size()) {
  for (std::size_t i = 0; i < count_; ++i) {
    double squares = 0;
    for (std::size_t element = 0; element < length_; ++element) {
      const double weight = weights[place(i, element)];
      lines_[i * length_ + element] = weight;
      squares += weight * weight;
    }
    inverses_.push_back(1.0 / std::max(std::sqrt(squares), kLeastNorm));
    for (std::size_t element = 0; element < length_; ++element) lines_[i * length_ + element] *= inverses_[i];
  }
  // A line alone has no other one.
  if (count_ < 2) return;
  const auto lines = static_cast<double>(count_);
  add_products(regularizer.orthogonal_factor() / (lines * (lines - 1.0) / 2.0));
}

std::size_t OrthogonalPenalty::place(std::size_t i, std::size_t element) const {
  return is_of_rows_ ? i * length_ + element : element * count_ + i;
}

void OrthogonalPenalty::add_products(double scale) {
  for (std::size_t i = 0; i < count_; ++i) {
    for (std::size_t j = i + 1; j < count_; ++j) {
      const double product = std::inner_product(line(i).begin(), line(i).end(), line(j).begin(), 0.0);
      value_ += scale * std::abs(product);
      if (product == 0) continue;
      const double slope = product > 0 ? scale : -scale;
      for (std::size_t element = 0; element < length_; ++element) {
        slopes_[i * length_ + element] += slope * line(j)[element];
        slopes_[j * length_ + element] += slope * line(i)[element];
      }
    }
  }
}

void OrthogonalPenalty::add_gradient(std::span<float> gradient) const {
  for (std::size_t i = 0; i < count_; ++i) {
    const std::span<const double> slopes = std::span(slopes_).subspan(i * length_, length_);
    // The factor of a line that is shorter than the least norm is a constant.
    const bool is_constant = inverses_[i] >= 1.0 / kLeastNorm;
    const double along = is_constant ? 0 : std::inner_product(slopes.begin(), slopes.end(), line(i).begin(), 0.0);
    for (std::size_t element = 0; element < length_; ++element) {
      float& sum = gradient[place(i, element)];
      sum = static_cast<float>(sum + (slopes[element] - line(i)[element] * along) * inverses_[i]);
    }
  }
}

}  // namespace holdfast
