// Negatives are what remains of the positives: so there are two arrays of sums, not four. Where weights are
// fractions, a difference may be a rounding below 0, which counts as 0.

#include "nn/losses/counts/threshold_counts.h"

#include <fmt/format.h>

#include <algorithm>

#include "holdfast/base/error.h"
#include "nn/losses/loss_values.h"

namespace holdfast {
namespace {

Value as_column(const Value& numbers) {
  return reshape(numbers, {numbers.shape()[0], 1});
}

// An axis for the thresholds, before that of the labels.
Value with_threshold_axis(const Value& x) {
  std::vector<std::int64_t> extents = x.shape().extents();
  extents.insert(extents.end() - 1, 1);
  return reshape(x, extents);
}

}  // namespace

ComparedOutputs with_even_thresholds(const Value& outputs, std::int64_t count, LowestThreshold lowest) {
  Value numbers = counted(outputs, count);
  // Each output is at least 0, and so above -1. The other thresholds stay.
  if (lowest == LowestThreshold::below_zero) numbers = numbers - less(numbers, 0.5F);
  // The outputs are multiplied, and not the thresholds divided: 1 / (count - 1) has no exact float.
  return {.outputs = clipped(outputs, 0, 1) * static_cast<float>(count - 1), .thresholds = as_column(numbers)};
}

ComparedOutputs with_thresholds(const Value& outputs, std::span<const float> thresholds) {
  return {.outputs = clipped(outputs, 0, 1), .thresholds = as_column(constants(outputs, thresholds))};
}

std::vector<Value> sums_of_thresholds(const ComparedOutputs& compared, const Value& targets,
                                      std::span<const float> label_weights) {
  const Value t = with_threshold_axis(targets);
  // Any number but 0 is positive, and where it is not, the target itself is the 0.
  Value positive = where(t, 1.0F, t);
  Value negative = 1.0F - positive;
  if (!label_weights.empty()) {
    const Value weights = constants(targets, label_weights);
    positive = positive * weights;
    negative = negative * weights;
  }
  const Value predicted = less(compared.thresholds, with_threshold_axis(compared.outputs));
  return {positive, negative, predicted * positive, predicted * negative};
}

Value of_one_label(const Value& x) {
  std::vector<std::int64_t> extents = x.shape().extents();
  extents.push_back(1);
  return reshape(x, extents);
}

std::vector<ThresholdCounts> counts_of_thresholds(std::span<const double> sums, std::size_t thresholds) {
  // Two rows of totals come first, then two arrays with a row for each threshold.
  const std::size_t labels = sums.size() / (2 + 2 * thresholds);
  const auto positives = sums.first(labels), negatives = sums.subspan(labels, labels);
  const auto true_positives = sums.subspan(2 * labels, thresholds * labels);
  const auto false_positives = sums.last(thresholds * labels);
  std::vector<ThresholdCounts> all(labels);
  for (std::size_t label = 0; label < labels; ++label) {
    for (std::size_t threshold = 0; threshold < thresholds; ++threshold) {
      const double right = true_positives[threshold * labels + label];
      const double wrong = false_positives[threshold * labels + label];
      all[label].true_positives.push_back(right);
      all[label].false_positives.push_back(wrong);
      all[label].true_negatives.push_back(std::max(negatives[label] - wrong, 0.0));
      all[label].false_negatives.push_back(std::max(positives[label] - right, 0.0));
    }
  }
  return all;
}

// A precision where nothing was predicted would be 0 / 0.
double share_of(double part, double rest) {
  return part + rest == 0 ? 0 : part / (part + rest);
}

Value element_of_class(std::string_view what, const Value& x, std::int64_t class_id) {
  const std::int64_t classes = x.shape().rank() == 0 ? 1 : x.shape().extents().back();
  if (class_id < classes) return element_of_last_axis(x, class_id);
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} was given .class_id = {}, but the outputs have {} classes, counted from 0", what,
                          class_id, classes));
}

void check_class_id(std::string_view what, std::int64_t class_id) {
  if (class_id >= 0) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} was given .class_id = {}; classes are counted from 0", what, class_id));
}

}  // namespace holdfast
