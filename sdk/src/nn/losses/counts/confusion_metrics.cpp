// Each count is a sum of its own, with `where` in place of products: a target of any number but 0 is positive, and a
// NaN among the outputs is larger than no threshold. docs/decisions/losses.md

#include "holdfast/nn/confusion_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/json_object.h"
#include "core/json_text.h"
#include "holdfast/base/error.h"
#include "nn/losses/counts/threshold_counts.h"
#include "nn/losses/loss_values.h"

namespace holdfast::metrics {
namespace {

constexpr float kThreshold = 0.5F;

// The name of the member is Keras's, which may be a list, too.
JsonObject thresholds_of(const std::string& kind, const PrecisionOptions& options) {
  if (options.thresholds.empty()) {
    const float threshold = checked_threshold(kind, options.threshold.value_or(kThreshold));
    const bool has_threshold = options.threshold || !options.top_k;
    return JsonObject().number_or_null("thresholds", has_threshold ? std::optional(threshold) : std::nullopt);
  }
  if (options.threshold) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} was given both .threshold and .thresholds; give one of them", kind));
  }
  std::vector<std::string> texts;
  for (const float threshold : options.thresholds) {
    texts.push_back(json_number(checked_threshold(kind, threshold)));
    if (std::ranges::count(texts, texts.back()) == 1) continue;
    // Two numbers of one name could not be told apart in the logs.
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} was given the threshold {} twice in .thresholds", kind, texts.back()));
  }
  return JsonObject().numbers("thresholds", options.thresholds);
}

std::string confusion_options(const std::string& kind, const PrecisionOptions& options) {
  JsonObject object = thresholds_of(kind, options);
  if (options.top_k) {
    if (*options.top_k < 1) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} was given .top_k = {}; it is at least 1", kind, *options.top_k));
    }
    object.integer("top_k", *options.top_k);
  }
  if (options.class_id) {
    check_class_id(kind, *options.class_id);
    object.integer("class_id", *options.class_id);
  }
  return object.members();
}

PrecisionOptions with_all_classes(const CountOptions& options) {
  // The default cannot be told from the same number given, so a list takes the place of both.
  const bool has_list = !options.thresholds.empty() && options.threshold == kThreshold;
  return {.threshold = has_list ? std::nullopt : std::optional(options.threshold),
          .thresholds = options.thresholds,
          .name = options.name};
}

// 1 at the k largest elements along the last axis, else 0. The first ones count among equal ones, as in Keras.
Value is_among_largest(const std::string& what, const Value& outputs, std::int64_t k) {
  const std::int64_t classes = outputs.shape().rank() == 0 ? 0 : outputs.shape().extents().back();
  if (k > classes) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} was given .top_k = {}, but the outputs have {} classes; it is at most that", what, k, classes));
  }
  constexpr float kFound = std::numeric_limits<float>::lowest();
  // Functions of values have no sort. Each round finds one more, and those found become the smallest. An output that is
  // as small, such as the minus infinity of a class that is masked, would be taken for one that was found.
  const Value above = maximum(outputs, 0.5F * kFound);
  Value found = first_largest(above);
  for (std::int64_t next = 1; next < k; ++next) found = found + first_largest(where(found, kFound, above));
  return found;
}

}  // namespace

ConfusionMetric::ConfusionMetric(const std::string& kind, const PrecisionOptions& options)
    : BuiltInMetric(kind, options.name, confusion_options(kind, options)),
      // Among the largest, each one is positive.
      threshold_(options.threshold.value_or(options.top_k ? std::numeric_limits<float>::lowest() : kThreshold)),
      thresholds_(options.thresholds),
      top_k_(options.top_k),
      class_id_(options.class_id) {}

ConfusionMetric::Elements ConfusionMetric::elements_of(const Value& outputs, const Value& targets) const {
  const auto seen = [&](const Value& x) {
    const Value elements = class_id_ ? element_of_class(name(), x, *class_id_) : x;
    // The last axis is then that of the thresholds.
    return thresholds_.empty() ? elements : of_one_label(elements);
  };
  const Value scores = seen(outputs);
  const Value predicted =
      thresholds_.empty() ? less(threshold_, scores) : less(constants(outputs, thresholds_), scores);
  // The mask is made of all classes, before one of them is picked out.
  if (!top_k_) return {predicted, seen(targets)};
  return {predicted * seen(is_among_largest(name(), outputs, *top_k_)), seen(targets)};
}

std::vector<double> ConfusionMetric::results(std::span<const double> sums, double weight) const {
  if (thresholds_.empty()) return {result(sums, weight)};
  std::vector<double> all, of_one;
  for (std::size_t place = 0; place < thresholds_.size(); ++place) {
    of_one.clear();
    // Each sum is an array of as many elements as there are thresholds.
    for (std::size_t next = place; next < sums.size(); next += thresholds_.size()) of_one.push_back(sums[next]);
    all.push_back(result(of_one, weight));
  }
  return all;
}

std::vector<std::string> ConfusionMetric::result_names(const Shape&) const {
  if (thresholds_.empty()) return {name()};
  std::vector<std::string> names;
  for (const float threshold : thresholds_) names.push_back(fmt::format("{}_{}", name(), json_number(threshold)));
  return names;
}

TruePositives::TruePositives(const CountOptions& options)
    : ConfusionMetric("true_positives", with_all_classes(options)) {}

std::vector<Value> TruePositives::sums(const Value& outputs, const Value& targets) const {
  const Elements of = elements_of(outputs, targets);
  return {where(of.targets, of.predicted, 0.0F)};
}

// A count is reported as it is: division by the weight would make a share of it.
double TruePositives::result(std::span<const double> sums, double) const {
  return sums[0];
}

FalsePositives::FalsePositives(const CountOptions& options)
    : ConfusionMetric("false_positives", with_all_classes(options)) {}

std::vector<Value> FalsePositives::sums(const Value& outputs, const Value& targets) const {
  const Elements of = elements_of(outputs, targets);
  return {where(of.targets, 0.0F, of.predicted)};
}

double FalsePositives::result(std::span<const double> sums, double) const {
  return sums[0];
}

TrueNegatives::TrueNegatives(const CountOptions& options)
    : ConfusionMetric("true_negatives", with_all_classes(options)) {}

std::vector<Value> TrueNegatives::sums(const Value& outputs, const Value& targets) const {
  const Elements of = elements_of(outputs, targets);
  return {where(of.targets, 0.0F, 1.0F - of.predicted)};
}

double TrueNegatives::result(std::span<const double> sums, double) const {
  return sums[0];
}

FalseNegatives::FalseNegatives(const CountOptions& options)
    : ConfusionMetric("false_negatives", with_all_classes(options)) {}

std::vector<Value> FalseNegatives::sums(const Value& outputs, const Value& targets) const {
  const Elements of = elements_of(outputs, targets);
  return {where(of.targets, 1.0F - of.predicted, 0.0F)};
}

double FalseNegatives::result(std::span<const double> sums, double) const {
  return sums[0];
}

Precision::Precision(const PrecisionOptions& options) : ConfusionMetric("precision", options) {}

std::vector<Value> Precision::sums(const Value& outputs, const Value& targets) const {
  const Elements of = elements_of(outputs, targets);
  // True positives, then false positives.
  return {where(of.targets, of.predicted, 0.0F), where(of.targets, 0.0F, of.predicted)};
}

// 0 where nothing was predicted, as in Keras; the quotient would be a NaN.
double Precision::result(std::span<const double> sums, double) const {
  return share_of(sums[0], sums[1]);
}

Recall::Recall(const PrecisionOptions& options) : ConfusionMetric("recall", options) {}

std::vector<Value> Recall::sums(const Value& outputs, const Value& targets) const {
  const Elements of = elements_of(outputs, targets);
  // True positives, then false negatives.
  return {where(of.targets, of.predicted, 0.0F), where(of.targets, 1.0F - of.predicted, 0.0F)};
}

double Recall::result(std::span<const double> sums, double) const {
  return share_of(sums[0], sums[1]);
}

}  // namespace holdfast::metrics
