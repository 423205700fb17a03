#pragma once

// Keeps the weights of a layer in bounds, with the definitions of Keras. A value: cheap to copy, immutable.
//
//   Dense{128, {.kernel_constraint = Constraint::max_norm(3)}}
//   Conv2D{16, 3, {.kernel_constraint = Constraint::max_norm(3, {0, 1, 2})}}   // the norm of each filter
//
// With |w| = sqrt(sum of squares) along `axes`, for each place of the other axes, and epsilon = 1e-7, weights w become
//
//   max_norm:      w min(|w|, max_value) / (|w| + epsilon)
//   non_neg:       max(w, 0)
//   unit_norm:     w / (|w| + epsilon)
//   min_max_norm:  w (rate clip(|w|, min_value, max_value) + (1 - rate) |w|) / (|w| + epsilon)
//
// after each update, and after moving averages have followed it (weight_average.h), as in Keras. Initial weights and
// those of frozen layers stay as they are. Each rank computes the same from the same weights, so the number of replicas
// changes no bit: sums are in double, in the order of the elements. On a device, the host computes them from a copy of
// these arrays in each step.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/shape.h"

namespace holdfast {

class Constraint {
 public:
  // Weights stay as they are.
  Constraint() = default;
  // An axis below 0 counts from the last one. The defaults are those of Keras. All throw Error{invalid_argument} for
  // axes that are named twice, and for numbers that are not finite or negative, a maximum below the minimum, or a rate
  // above 1.
  static Constraint max_norm(float max_value = 2, std::vector<std::int64_t> axes = {0});
  static Constraint non_neg();  // no element below 0
  static Constraint unit_norm(std::vector<std::int64_t> axes = {0});
  static Constraint min_max_norm(float min_value = 0, float max_value = 1, float rate = 1,
                                 std::vector<std::int64_t> axes = {0});

  bool is_none() const { return kind_ == Kind::none; }  // whether all values are allowed

  // The name in configurations: "max_norm(2)", "non_neg()", "unit_norm([0,1])", "min_max_norm(0,1,1)". Axes other than
  // 0 follow the numbers. Empty without a constraint.
  std::string name() const;
  // The inverse of name(). Throws Error{invalid_argument} for any other text.
  static Constraint from_name(std::string_view name);

  // Throws Error{invalid_argument} unless weights of this shape have the axes.
  void check(const Shape& shape) const;
  // Constrains weights of this shape, row-major, in the host's memory.
  void apply(const Shape& shape, std::span<float> weights) const;

  friend bool operator==(const Constraint&, const Constraint&) = default;

 private:
  enum class Kind { none, max_norm, non_neg, unit_norm, min_max_norm };

  Constraint(Kind kind, std::vector<float> numbers, std::vector<std::int64_t> axes);
  double factor_of(double norm) const;

  Kind kind_ = Kind::none;
  std::vector<float> numbers_;  // in the order of the functions above
  std::vector<std::int64_t> axes_;
};

}  // namespace holdfast
