// The formulas are those of keras.losses and keras.metrics. Where Keras's order of operations loses digits of f32, the
// same function is computed in another one: scores of cross-entropies by softplus, log(cosh(x)) of the absolute value.

#include "nn/losses/loss_values.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "holdfast/base/error.h"
#include "nn/losses/softmax_row.h"

namespace holdfast {
namespace {

constexpr float kLog2 = 0.693147180559945309F;

Value normalized_along(const Value& x, std::int64_t axis) {
  // Keras's ops.normalize() bounds the sum of squares by the square of its epsilon, 1e-12.
  const Value squares = sum(square(x), {axis}, ReducedAxes::keep);
  return x * reciprocal_root(maximum(squares, 1e-12F));
}

// 0, 1, ..., count - 1 along the last axis of zeros, which has the extent 1. Each round doubles how many there are.
Value counted_from(const Value& zeros, std::int64_t count) {
  Value numbers = zeros;
  std::int64_t made = 1;
  for (; made < count; made *= 2) numbers = concatenate({numbers, numbers + static_cast<float>(made)}, -1);
  return made == count ? numbers : slice(numbers, -1, 0, count);
}

// A zero for each sample, of the shape [1]. There are no constant arrays, and no NaN of x enters it.
Value zero_of(const Value& x) {
  const Value first = slice(reshape(x, {x.shape().element_count()}), 0, 0, 1);
  return less(first, first);
}

}  // namespace

Value clipped(const Value& x, float low, float high) {
  return minimum(maximum(x, low), high);
}

Value absolute_error(const Value& outputs, const Value& targets) {
  return absolute(outputs - targets);
}

// The bound is Keras's. A target of 0 gives a large error and not an infinite one.
Value absolute_percentage_error(const Value& outputs, const Value& targets) {
  return 100.0F * (absolute(targets - outputs) / maximum(absolute(targets), kKerasEpsilon));
}

// Numbers below epsilon count as epsilon, as in Keras. So negative outputs have a loss, but no gradient.
Value squared_logarithmic_error(const Value& outputs, const Value& targets) {
  const auto log_of = [](const Value& x) { return logarithm(maximum(x, kKerasEpsilon) + 1.0F); };
  return square(log_of(outputs) - log_of(targets));
}

Value log_cosh(const Value& outputs, const Value& targets) {
  // The function is even, and of a positive number nothing overflows.
  const Value distance = absolute(outputs - targets);
  return distance + softplus(-2.0F * distance) - kLog2;
}

// Outputs are rates. Epsilon keeps the logarithm of a rate of 0 finite; a negative rate gives a NaN, as in Keras.
Value poisson(const Value& outputs, const Value& targets) {
  return outputs - targets * logarithm(outputs + kKerasEpsilon);
}

// Both are clipped, as in Keras: a share of 0 would make 0 * log(0), which is a NaN.
Value kl_divergence(const Value& outputs, const Value& targets) {
  const Value t = clipped(targets, kKerasEpsilon, 1);
  return sum(t * logarithm(t / clipped(outputs, kKerasEpsilon, 1)), {-1});
}

// A vector of zeros is similar to none: its similarity is 0, thanks to the bound of the norm.
Value cosine_similarity(const Value& outputs, const Value& targets, std::int64_t axis) {
  return sum(normalized_along(outputs, axis) * normalized_along(targets, axis), {axis});
}

Value hinge(const Value& outputs, const Value& targets) {
  // A label of 0 stands for -1.
  return maximum(1.0F - where(targets, targets, -1.0F) * outputs, 0.0F);
}

Value categorical_hinge(const Value& outputs, const Value& targets) {
  const Value right = sum(targets * outputs, {-1});
  // The right class has a 0 here, as in Keras. So `wrong` is never below 0, even if all other scores are.
  const Value wrong = largest((1.0F - targets) * outputs, {-1});
  return maximum(wrong - right + 1.0F, 0.0F);
}

Value binary_crossentropy(const Value& outputs, const Value& targets, bool from_logits) {
  if (from_logits) return softplus(outputs) - targets * outputs;
  const Value p = clipped(outputs, kKerasEpsilon, 1 - kKerasEpsilon);
  return -(targets * logarithm(p) + (1.0F - targets) * logarithm(1.0F - p));
}

Value log_probabilities(const Value& outputs, bool from_logits) {
  if (!from_logits) {
    const Value shares = outputs / sum(outputs, {-1}, ReducedAxes::keep);
    return logarithm(clipped(shares, kKerasEpsilon, 1 - kKerasEpsilon));
  }
  // The largest score changes nothing but keeps the exponentials finite.
  const Value shifted = outputs - stop_gradient(largest(outputs, {-1}, ReducedAxes::keep));
  return shifted - logarithm(sum(exponential(shifted), {-1}, ReducedAxes::keep));
}

Value categorical_crossentropy(const Value& outputs, const Value& targets, bool from_logits, float smoothing) {
  const Value t = smoothed(targets, smoothing, targets.shape().extents().back());
  return -sum(t * log_probabilities(outputs, from_logits), {-1});
}

Value places(const Value& x) {
  // There are no constant arrays, so the numbers grow from zeros, which no NaN of x enters.
  const Value first = slice(x, -1, 0, 1);
  return counted_from(less(first, first), x.shape().extents().back());
}

Value counted(const Value& x, std::int64_t count) {
  return counted_from(zero_of(x), count);
}

Value constants(const Value& x, std::span<const float> numbers) {
  const Value zero = zero_of(x);
  std::vector<Value> all;
  for (const float number : numbers) all.push_back(zero + number);
  return all.size() == 1 ? all.front() : concatenate(all, 0);
}

Value first_largest(const Value& x) {
  const Value places_of = places(x);
  const Value is_largest = equal(x, largest(x, {-1}, ReducedAxes::keep));
  // The smallest place is minus the largest of negative ones.
  const auto none = -static_cast<float>(x.shape().extents().back());
  const Value first = -largest(where(is_largest, -places_of, none), {-1}, ReducedAxes::keep);
  return equal(places_of, first);
}

Value one_hot(const Value& outputs, const Value& class_numbers) {
  std::vector<std::int64_t> extents = outputs.shape().extents();
  extents.back() = 1;
  return equal(places(outputs), reshape(class_numbers, extents));
}

Value sparse_crossentropy(const Value& log_probabilities, const Value& class_numbers) {
  // A product with 0 would keep the infinity of a class that was masked.
  return -sum(where(one_hot(log_probabilities, class_numbers), log_probabilities, 0.0F), {-1});
}

Value element_of_last_axis(const Value& x, std::int64_t index) {
  return x.shape().rank() == 0 ? x : slice(x, -1, index, index + 1);
}

std::vector<std::string> names_of_elements(const std::string& name, const Shape& outputs) {
  std::vector<std::string> names;
  const std::int64_t count = outputs.rank() == 0 ? 1 : outputs.extents().back();
  for (std::int64_t element = 0; element < count; ++element) names.push_back(fmt::format("{}_{}", name, element));
  return names;
}

std::int64_t checked_classes(std::string_view what, const Value& outputs) {
  // Each sum is a reduction of its own in every step.
  constexpr std::int64_t kMost = 1024;
  const std::int64_t classes = outputs.shape().rank() == 0 ? 1 : outputs.shape().extents().back();
  if (classes <= kMost) return classes;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} keeps sums for each element of the last axis, of which there "
                          "are {}; it takes at most {}",
                          what, classes, kMost));
}

void check_class_axes(const std::string& what, const Value& outputs, const Value& targets) {
  check_has_classes(what, outputs.shape());
  if (targets.shape().rank() > 0) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} takes a row with a number for each class as target, and the targets are single numbers; "
                          "for class numbers, use the sparse metric of this kind",
                          what));
}

void check_equal_shapes(std::string_view what, const Value& outputs, const Value& targets) {
  if (outputs.shape() == targets.shape()) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("{} takes a target for each element of the outputs, which have the shape {}; the targets have "
                  "{}",
                  what, outputs.shape().to_string(), targets.shape().to_string()));
}

// Without smoothing the graph stays as it is, and so do its bits.
Value smoothed(const Value& targets, float smoothing, std::int64_t parts) {
  if (smoothing == 0) return targets;
  return targets * (1 - smoothing) + smoothing / static_cast<float>(parts);
}

void check_range(std::string_view what, std::string_view option, float value, float low, float high) {
  // A NaN is in no range.
  if (std::isfinite(value) && value >= low && value <= high) return;
  const std::string range = std::isinf(high) ? fmt::format("a finite number from {} on", low)
                                             : fmt::format("a number from {} to {}", low, high);
  throw Error(ErrorCode::invalid_argument, fmt::format("{} was given .{} = {}; it is {}", what, option, value, range));
}

void check_above_zero(std::string_view what, std::string_view option, float value) {
  if (std::isfinite(value) && value > 0) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} was given .{} = {}; it is a finite number above 0", what, option, value));
}

float checked_threshold(std::string_view what, float threshold) {
  if (std::isfinite(threshold)) return threshold;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} was given .threshold = {}; it is a finite number", what, threshold));
}

}  // namespace holdfast
