#include "holdfast/nn/accuracy_metrics.h"

#include <fmt/format.h>

#include "core/json_object.h"
#include "holdfast/base/error.h"
#include "nn/losses/loss_values.h"
#include "nn/losses/softmax_row.h"

namespace holdfast::metrics {
namespace {

std::string checked_k(std::string_view what, std::int64_t k) {
  if (k < 1) throw Error(ErrorCode::invalid_argument, fmt::format("{} was given .k = {}; it is at least 1", what, k));
  return JsonObject().integer("k", k).members();
}

// `right` is 1 at the right class. What is not at most as large as its output is larger, so that a NaN is.
Value is_in_top_k(std::string_view what, const Value& outputs, const Value& right, std::int64_t k) {
  const std::int64_t classes = outputs.shape().extents().back();
  if (k > classes) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} was given .k = {}, but the outputs have {} classes; k is at most that", what, k, classes));
  }
  const Value of_right = sum(where(right, outputs, 0.0F), {-1}, ReducedAxes::keep);
  const Value larger = sum(1.0F - less_equal(outputs, of_right), {-1});
  // The last factor is 0 where no class is right, so that a label out of range is a miss.
  return less(larger, static_cast<float>(k)) * sum(right, {-1});
}

}  // namespace

Accuracy::Accuracy(const MetricOptions& options) : BuiltInMetric("accuracy", options.name) {}

// Exact equality, as in Keras: it is meant for outputs that are class numbers already.
std::vector<Value> Accuracy::sums(const Value& outputs, const Value& targets) const {
  return {equal(outputs, targets)};
}

TopKCategoricalAccuracy::TopKCategoricalAccuracy(const TopKOptions& options)
    : BuiltInMetric("top_k_categorical_accuracy", options.name, checked_k("top_k_categorical_accuracy", options.k)),
      k_(options.k) {}

std::vector<Value> TopKCategoricalAccuracy::sums(const Value& outputs, const Value& targets) const {
  check_class_axes(name(), outputs, targets);
  return {is_in_top_k(name(), outputs, first_largest(targets), k_)};
}

SparseTopKCategoricalAccuracy::SparseTopKCategoricalAccuracy(const TopKOptions& options)
    : BuiltInMetric("sparse_top_k_categorical_accuracy", options.name,
                    checked_k("sparse_top_k_categorical_accuracy", options.k)),
      k_(options.k) {}

std::vector<Value> SparseTopKCategoricalAccuracy::sums(const Value& outputs, const Value& targets) const {
  check_has_classes(name(), outputs.shape());
  return {is_in_top_k(name(), outputs, one_hot(outputs, targets), k_)};
}

}  // namespace holdfast::metrics
