#pragma once

// What losses and metrics of one name both describe, and checks of their options. `outputs` and `targets` are those of
// ValueLoss::losses(); the results have a number for each element, or for each vector along an axis.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/nn/functions.h"

namespace holdfast {

// Keras's backend.epsilon().
constexpr float kKerasEpsilon = 1e-7F;

Value clipped(const Value& x, float low, float high);

Value absolute_error(const Value& outputs, const Value& targets);
Value absolute_percentage_error(const Value& outputs, const Value& targets);
Value squared_logarithmic_error(const Value& outputs, const Value& targets);
Value log_cosh(const Value& outputs, const Value& targets);
Value poisson(const Value& outputs, const Value& targets);
Value kl_divergence(const Value& outputs, const Value& targets);
Value cosine_similarity(const Value& outputs, const Value& targets, std::int64_t axis);
Value hinge(const Value& outputs, const Value& targets);
Value categorical_hinge(const Value& outputs, const Value& targets);
// -t log p - (1 - t) log(1 - p)
Value binary_crossentropy(const Value& outputs, const Value& targets, bool from_logits);
// Along the last axis: of scores by the logarithm of the softmax; of numbers divided by their sum and clipped.
Value log_probabilities(const Value& outputs, bool from_logits);
// -sum(t log p) along the last axis, of smoothed targets.
Value categorical_crossentropy(const Value& outputs, const Value& targets, bool from_logits, float smoothing);

// The place of each element along the last axis: 0, 1, 2, ... in the shape of x.
Value places(const Value& x);
// 0, 1, ..., count - 1 for each sample of x, in the shape [count].
Value counted(const Value& x, std::int64_t count);
// These numbers for each sample of x, in the shape [numbers].
Value constants(const Value& x, std::span<const float> numbers);
// 1 at the first of the largest elements along the last axis, else 0. A row with a NaN becomes zeros.
Value first_largest(const Value& x);
// 1 where the place of an output is that of the target, a class number, else 0. Axes of extent 1 at the end of the
// targets do not matter.
Value one_hot(const Value& outputs, const Value& class_numbers);
// -log p of the class whose number is the target; 0 if no class has it. log_probabilities() are of the outputs.
Value sparse_crossentropy(const Value& log_probabilities, const Value& class_numbers);

// One element along the last axis, which stays with extent 1. A value without axes is its own element.
Value element_of_last_axis(const Value& x, std::int64_t index);
// "name_0", "name_1" and so on, for each element of the last axis.
std::vector<std::string> names_of_elements(const std::string& name, const Shape& outputs);
// The extent of the last axis, for metrics with sums for each element of it. Throws Error{invalid_argument} above 1024.
std::int64_t checked_classes(std::string_view what, const Value& outputs);

// Throws Error{invalid_argument} unless both have a last axis, the classes: for targets that are rows of classes.
void check_class_axes(const std::string& what, const Value& outputs, const Value& targets);

// Throws Error{invalid_argument} unless there is a target for each element of the outputs. A broadcast would count
// something else.
void check_equal_shapes(std::string_view what, const Value& outputs, const Value& targets);

// t (1 - smoothing) + smoothing / parts
Value smoothed(const Value& targets, float smoothing, std::int64_t parts);

// Throws Error{invalid_argument} unless `value` is a number from `low` to `high`, which may be infinite. `what` begins
// the sentence: "huber".
void check_range(std::string_view what, std::string_view option, float value, float low, float high);
void check_above_zero(std::string_view what, std::string_view option, float value);
// The finite threshold of a metric.
float checked_threshold(std::string_view what, float threshold);

}  // namespace holdfast
