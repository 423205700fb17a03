#pragma once

// A penalty on the size of a layer's weights, with the definitions of Keras. A value: cheap to copy, immutable.
//
//   Dense{128, {.kernel_regularizer = Regularizer::l2(1e-4F)}}
//
// For weights w,
//
//   l1:     l1 sum |w|                     with the gradient l1 sign(w)
//   l2:     l2 sum w^2                     with the gradient 2 l2 w
//   l1_l2:  the sum of both
//   orthogonal:  factor / pairs times the sum of |u_i u_j| over all pairs of different rows (or columns) of a matrix,
//                where u_i is row i divided by its norm, and pairs is their number
//
// The penalties of all layers are added to "loss", in training and in evaluation, and not to the losses of single
// outputs. They are those of the parameters before the step. The gradient is added once to the sum over all shards, and
// before clipping: so neither the number of shards nor that of replicas changes the penalty. Weights of frozen layers
// have none. Sums are taken in double, in the order of the elements.

#include <string>
#include <string_view>

#include "holdfast/core/shape.h"

namespace holdfast {

class Regularizer {
 public:
  // No penalty.
  Regularizer() = default;
  // Throw Error{invalid_argument} for a factor that is negative or not finite. The defaults are those of Keras.
  static Regularizer l1(float factor = 0.01F) { return l1_l2(factor, 0); }
  static Regularizer l2(float factor = 0.01F) { return l1_l2(0, factor); }  // factor times the sum of w^2
  static Regularizer l1_l2(float l1 = 0, float l2 = 0);
  // Draws the rows or columns of a matrix towards right angles (keras.regularizers.OrthogonalRegularizer). A layer
  // refuses it for an array of another number of axes (Error{invalid_argument}). Its time grows with the square of
  // the number of rows or columns; one of them alone has no penalty.
  enum class Lines { rows, columns };
  // Factor and lines of that penalty.
  static Regularizer orthogonal(float factor = 0.01F, Lines lines = Lines::rows);

  // Factors of the sums of |w| and of w^2.
  float l1_factor() const { return l1_; }
  float l2_factor() const { return l2_; }
  // The factor of the products of rows or columns. If it is not 0, the other factors are.
  float orthogonal_factor() const { return orthogonal_; }
  Lines lines() const { return lines_; }                                     // those of which the products are
  bool is_none() const { return l1_ == 0 && l2_ == 0 && orthogonal_ == 0; }  // whether all factors are 0

  // Throws Error{invalid_argument} unless the penalty fits an array of this shape.
  void check(const Shape& shape) const;

  // The name in configurations: "l1(0.01)", "l2(0.01)", "l1_l2(0.01,0.02)", "orthogonal(0.01,rows)". Empty without a
  // penalty.
  std::string name() const;
  // The inverse of name(). Throws Error{invalid_argument} for any other text.
  static Regularizer from_name(std::string_view name);

  friend bool operator==(const Regularizer&, const Regularizer&) = default;

 private:
  float l1_ = 0;
  float l2_ = 0;
  float orthogonal_ = 0;
  Lines lines_ = Lines::rows;
};

}  // namespace holdfast
