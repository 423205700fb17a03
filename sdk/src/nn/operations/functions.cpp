// Most functions are one operation on elements each, so that a file can name them and a plan can join them. A float
// operand becomes a constant of the operation. It needs no array, and its gradient is never asked for.
// docs/decisions/models.md

#include "holdfast/nn/functions.h"

#include <fmt/format.h>

#include <algorithm>

#include "holdfast/base/error.h"
#include "nn/operations/elements.h"
#include "nn/operations/operations.h"
#include "nn/operations/strides.h"

namespace holdfast {

using compute::ElementFunction;

Value operator+(const Value& a, const Value& b) {
  return element_function(ElementFunction::add, {a, b});
}
Value operator-(const Value& a, const Value& b) {
  return element_function(ElementFunction::subtract, {a, b});
}
Value operator*(const Value& a, const Value& b) {
  return element_function(ElementFunction::multiply, {a, b});
}
Value operator/(const Value& a, const Value& b) {
  return element_function(ElementFunction::divide, {a, b});
}
Value operator-(const Value& a) {
  return element_function(ElementFunction::negative, {a});
}
Value operator+(const Value& a, float b) {
  return element_function(ElementFunction::add, {a, b});
}
Value operator-(const Value& a, float b) {
  return element_function(ElementFunction::subtract, {a, b});
}
Value operator*(const Value& a, float b) {
  return element_function(ElementFunction::multiply, {a, b});
}
Value operator/(const Value& a, float b) {
  return element_function(ElementFunction::divide, {a, b});
}
// The constant may be the first operand, too: 1 - x is one operation.
Value operator+(float a, const Value& b) {
  return element_function(ElementFunction::add, {a, b});
}
Value operator-(float a, const Value& b) {
  return element_function(ElementFunction::subtract, {a, b});
}
Value operator*(float a, const Value& b) {
  return element_function(ElementFunction::multiply, {a, b});
}
Value operator/(float a, const Value& b) {
  return element_function(ElementFunction::divide, {a, b});
}

Value absolute(const Value& x) {
  return element_function(ElementFunction::absolute, {x});
}
Value sign(const Value& x) {
  return element_function(ElementFunction::sign, {x});
}
Value square(const Value& x) {
  return element_function(ElementFunction::square, {x});
}
Value square_root(const Value& x) {
  return element_function(ElementFunction::square_root, {x});
}
Value reciprocal_root(const Value& x) {
  return element_function(ElementFunction::reciprocal_root, {x});
}
Value exponential(const Value& x) {
  return element_function(ElementFunction::exponential, {x});
}
Value logarithm(const Value& x) {
  return element_function(ElementFunction::logarithm, {x});
}
// The exponent is a constant, so no gradient needs the logarithm of x.
Value power(const Value& x, float exponent) {
  return element_function(ElementFunction::power, {x, exponent});
}
Value minimum(const Value& a, const Value& b) {
  return element_function(ElementFunction::minimum, {a, b});
}
Value minimum(const Value& a, float b) {
  return element_function(ElementFunction::minimum, {a, b});
}
Value maximum(const Value& a, float b) {
  return element_function(ElementFunction::maximum, {a, b});
}
Value maximum(const Value& a, const Value& b) {
  return element_function(ElementFunction::maximum, {a, b});
}
// Comparisons give 1 or 0, which sums can count and products can select.
Value less(const Value& a, const Value& b) {
  return element_function(ElementFunction::less, {a, b});
}
Value less(const Value& a, float b) {
  return element_function(ElementFunction::less, {a, b});
}
// There is no greater(): it is less() with the operands exchanged, so a float may stand on either side.
Value less(float a, const Value& b) {
  return element_function(ElementFunction::less, {a, b});
}
Value less_equal(const Value& a, const Value& b) {
  return element_function(ElementFunction::less_equal, {a, b});
}
Value equal(const Value& a, const Value& b) {
  return element_function(ElementFunction::equal, {a, b});
}
// A condition is a number, and each one but 0 counts as true. So comparisons need no type of their own.
Value where(const Value& condition, const Value& a, const Value& b) {
  return element_function(ElementFunction::select, {condition, a, b});
}
Value where(const Value& condition, const Value& a, float b) {
  return element_function(ElementFunction::select, {condition, a, b});
}
Value where(const Value& condition, float a, const Value& b) {
  return element_function(ElementFunction::select, {condition, a, b});
}

// These activations have kernels of their own on each back end.
Value relu(const Value& x) {
  return activation(x, Activation::relu);
}
Value sigmoid(const Value& x) {
  return activation(x, Activation::sigmoid);
}
Value tanh(const Value& x) {
  return activation(x, Activation::tanh);
}
Value gelu(const Value& x) {
  return activation(x, Activation::gelu);
}
// Along the last axis, unlike the others.
Value softmax(const Value& x) {
  return activation(x, Activation::softmax);
}
// These three are functions of elements, so that a plan can join them with their neighbours.
Value gelu_tanh(const Value& x) {
  return element_function(ElementFunction::gelu_tanh, {x});
}
Value silu(const Value& x) {
  return element_function(ElementFunction::silu, {x});
}
Value softplus(const Value& x) {
  return element_function(ElementFunction::softplus, {x});
}

Value reshape(const Value& x, const std::vector<std::int64_t>& extents) {
  std::vector<std::int64_t> complete = extents;
  std::int64_t known = 1;
  // Only the first -1 is completed. A second one stays, and is refused below.
  const auto unknown = std::find(complete.begin(), complete.end(), -1);
  for (const std::int64_t extent : complete) {
    // Extents of a file may have any product. 0 stands for one that is too large, and completes no shape.
    if (extent != -1 && __builtin_mul_overflow(known, extent, &known)) known = 0;
  }
  // The division may leave a rest. The comparison of element counts below finds it.
  if (unknown != complete.end() && known > 0) *unknown = x.shape().element_count() / known;
  // Extents may come from a file, so any of them may be negative or 0.
  const bool is_possible = std::count(extents.begin(), extents.end(), -1) <= 1 &&
                           std::all_of(complete.begin(), complete.end(), [](std::int64_t e) { return e >= 1; });
  if (is_possible && Shape(complete).element_count() == x.shape().element_count()) return reshape(x, Shape(complete));
  throw Error(ErrorCode::invalid_argument,
              fmt::format("a value of shape {} cannot be reshaped to [{}]: the number of elements must stay the same, "
                          "and one extent may be -1",
                          x.shape().to_string(), fmt::join(extents, ", ")));
}

}  // namespace holdfast
