#pragma once

// Counts of true and false positives at many thresholds: as sums of a metric, and read back from them. There are T
// thresholds, and L labels, each with counts of its own.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/nn/functions.h"

namespace holdfast {

// Thresholds that lie evenly from 0 to 1.
enum class LowestThreshold { zero, below_zero };

// An output and what it is compared with, of the shape [T, 1].
struct ComparedOutputs {
  Value outputs;
  Value thresholds;
};
// Outputs from 0 to `count` - 1 for whole numbers as thresholds, which f32 compares without an error of its own.
ComparedOutputs with_even_thresholds(const Value& outputs, std::int64_t count, LowestThreshold lowest);
ComparedOutputs with_thresholds(const Value& outputs, std::span<const float> thresholds);

// The sums: how much is positive and how much negative, [1, L] each, and the true and the false positives, [T, L] each.
// The last axis of outputs and targets are the labels; `label_weights` is empty, or a weight for each of them.
std::vector<Value> sums_of_thresholds(const ComparedOutputs& compared, const Value& targets,
                                      std::span<const float> label_weights);
// With an axis of extent 1 after the others, so that all elements are of one label.
Value of_one_label(const Value& x);

// One label's counts, an element for each threshold.
struct ThresholdCounts {
  std::vector<double> true_positives, false_positives, true_negatives, false_negatives;

  std::size_t size() const { return true_positives.size(); }
};
std::vector<ThresholdCounts> counts_of_thresholds(std::span<const double> sums, std::size_t thresholds);

// part / (part + rest), and 0 where both are 0.
double share_of(double part, double rest);

// The element of the last axis that `class_id` numbers. Throws Error{invalid_argument} for a class that x lacks.
Value element_of_class(std::string_view what, const Value& x, std::int64_t class_id);
// Throws Error{invalid_argument} below 0.
void check_class_id(std::string_view what, std::int64_t class_id);

}  // namespace holdfast
