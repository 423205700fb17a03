// Sums are counts at each threshold (threshold_counts.h); the formulas of keras.metrics make the reported number of
// them, in double. docs/decisions/losses.md

#include "holdfast/nn/threshold_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string_view>

#include "core/json_object.h"
#include "core/json_text.h"
#include "holdfast/base/error.h"
#include "nn/losses/counts/threshold_counts.h"
#include "nn/losses/crossentropy_checks.h"
#include "nn/losses/loss_values.h"

namespace holdfast::metrics {
namespace {

const char* text_of(AUCCurve curve) {
  return curve == AUCCurve::roc ? "ROC" : curve == AUCCurve::pr ? "PR" : "PRGAIN";
}

const char* text_of(AUCSummation method) {
  return method == AUCSummation::interpolation ? "interpolation"
         : method == AUCSummation::minoring    ? "minoring"
                                               : "majoring";
}

void check_threshold_count(std::string_view what, std::int64_t count, std::int64_t least) {
  // Each threshold is two numbers that all replicas add in each step, for each label.
  constexpr std::int64_t kMost = 10'000;
  if (count >= least && count <= kMost) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("{} was given .num_thresholds = {}; it is a number from {} to {}", what, count, least, kMost));
}

std::string auc_options(const AUCOptions& options) {
  constexpr std::string_view kWhat = "auc";
  for (const float threshold : options.thresholds) check_range(kWhat, "thresholds", threshold, 0, 1);
  const auto given = static_cast<std::int64_t>(options.thresholds.size());
  check_threshold_count(kWhat, given == 0 ? options.num_thresholds : given + 2, 2);
  for (const float weight : options.label_weights) {
    check_range(kWhat, "label_weights", weight, 0, std::numeric_limits<float>::infinity());
  }
  JsonObject object;
  object.integer("num_thresholds", given == 0 ? options.num_thresholds : given + 2)
      .value("curve", json_string(text_of(options.curve)))
      .value("summation_method", json_string(text_of(options.summation_method)))
      .boolean("multi_label", options.multi_label);
  if (options.label_weights.empty()) {
    object.value("label_weights", "null");
  } else {
    object.numbers("label_weights", options.label_weights);
  }
  object.boolean("from_logits", options.from_logits);
  // Without the two ends that with_ends() adds: Keras adds them again.
  if (given > 0) object.numbers("thresholds", options.thresholds);
  return object.members();
}

// Sorted, with one below 0 and one above 1. As in Keras: all outputs are above the first threshold and none above the
// last, so a curve goes from end to end.
AUCOptions with_ends(AUCOptions options) {
  if (options.thresholds.empty()) return options;
  std::ranges::sort(options.thresholds);
  options.thresholds.insert(options.thresholds.begin(), -kKerasEpsilon);
  options.thresholds.push_back(1 + kKerasEpsilon);
  options.num_thresholds = static_cast<std::int64_t>(options.thresholds.size());
  return options;
}

// As Keras's divide_no_nan().
double quotient(double a, double b) {
  return b == 0 ? 0 : a / b;
}

// The closed formula of Keras for counts that are linear between two thresholds. Precision itself is not linear there
// (Davis and Goadrich, 2006, section 4).
double interpolated_pr_area(const ThresholdCounts& counts) {
  double area = 0;
  for (std::size_t i = 0; i + 1 < counts.size(); ++i) {
    const double right = counts.true_positives[i + 1];
    const double more_right = counts.true_positives[i] - right;
    const double predicted = counts.true_positives[i] + counts.false_positives[i];
    const double next = right + counts.false_positives[i + 1];
    const double slope = quotient(more_right, std::max(predicted - next, 0.0));
    const double intercept = right - slope * next;
    const double ratio = predicted > 0 && next > 0 ? predicted / next : 1;
    area += quotient(slope * (more_right + intercept * std::log(ratio)), right + counts.false_negatives[i + 1]);
  }
  return area;
}

struct CurvePoint {
  double x = 0;
  double y = 0;
};

CurvePoint point_of(AUCCurve curve, const ThresholdCounts& counts, std::size_t i) {
  const double tp = counts.true_positives[i], fp = counts.false_positives[i];
  const double tn = counts.true_negatives[i], fn = counts.false_negatives[i];
  if (curve == AUCCurve::roc) return {.x = share_of(fp, tn), .y = share_of(tp, fn)};
  if (curve == AUCCurve::pr) return {.x = share_of(tp, fn), .y = share_of(tp, fp)};
  // Without a true positive both gains are infinite. Keras puts the point where a curve begins.
  if (tp == 0) return {.x = 0, .y = 1};
  const double factor = quotient(tp + fn, tn + fp);
  return {.x = std::max(1 - factor * fn / tp, 0.0), .y = 1 - factor * fp / tp};
}

double height_of(AUCSummation method, double a, double b) {
  if (method == AUCSummation::interpolation) return (a + b) / 2;
  return method == AUCSummation::minoring ? std::min(a, b) : std::max(a, b);
}

// Thresholds rise, so x falls from point to point.
double area_of(const AUCOptions& options, const ThresholdCounts& counts) {
  if (options.curve == AUCCurve::pr && options.summation_method == AUCSummation::interpolation) {
    return interpolated_pr_area(counts);
  }
  double area = 0;
  CurvePoint last = point_of(options.curve, counts, 0);
  // A Riemann sum, as Keras's AUC takes it.
  for (std::size_t i = 1; i < counts.size(); ++i) {
    const CurvePoint next = point_of(options.curve, counts, i);
    area += (last.x - next.x) * height_of(options.summation_method, last.y, next.y);
    last = next;
  }
  return area;
}

// Options by Keras's names.
std::string operating_options(const std::string& kind, const std::string& option, float value,
                              const OperatingPointOptions& options) {
  check_range(kind, option, value, 0, 1);
  check_threshold_count(kind, options.num_thresholds, 1);
  if (options.class_id) check_class_id(kind, *options.class_id);
  JsonObject object;
  object.number(option, value).integer("num_thresholds", options.num_thresholds);
  if (options.class_id) return object.integer("class_id", *options.class_id).members();
  return object.value("class_id", "null").members();
}

double precision_of(const ThresholdCounts& counts, std::size_t i) {
  return share_of(counts.true_positives[i], counts.false_positives[i]);
}

double sensitivity_of(const ThresholdCounts& counts, std::size_t i) {
  return share_of(counts.true_positives[i], counts.false_negatives[i]);
}

double specificity_of(const ThresholdCounts& counts, std::size_t i) {
  return share_of(counts.true_negatives[i], counts.false_positives[i]);
}

using RateOfCounts = double(const ThresholdCounts& counts, std::size_t threshold);

// The largest `best` where `reached` is at least `value`. The result is 0 where no threshold reaches `value`, as in
// Keras.
double best_where(std::span<const double> sums, float value, RateOfCounts& reached, RateOfCounts& best) {
  // All elements are of one label, so the two totals are single numbers and the rest are thresholds.
  const ThresholdCounts counts = counts_of_thresholds(sums, (sums.size() - 2) / 2).front();
  double found = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    // In f32, so that a rate of 4 / 5 reaches 0.8F.
    if (static_cast<float>(reached(counts, i)) >= value) found = std::max(found, best(counts, i));
  }
  return found;
}

}  // namespace

AUC::AUC(const AUCOptions& options)
    : BuiltInMetric("auc", options.name, auc_options(options)), options_(with_ends(options)) {}

void AUC::check_last_activation(std::optional<Activation> last) const {
  if (!options_.accept_any_activation) check_metric_of_probabilities(name(), options_.from_logits, last, "sigmoid");
}

std::vector<Value> AUC::sums(const Value& outputs, const Value& targets) const {
  check_equal_shapes(name(), outputs, targets);
  const std::int64_t labels = outputs.shape().rank() == 0 ? 1 : outputs.shape().extents().back();
  const auto weights = static_cast<std::int64_t>(options_.label_weights.size());
  if (weights != 0 && weights != labels) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} was given {} .label_weights for outputs whose last axis has {} elements; give one for "
                            "each element",
                            name(), weights, labels));
  }
  // The last axis is that of the labels where each has a curve, or a weight.
  const bool has_labels = outputs.shape().rank() > 0 && (options_.multi_label || weights > 0);
  const Value scores = options_.from_logits ? sigmoid(outputs) : outputs;
  const Value seen = has_labels ? scores : of_one_label(scores);
  const ComparedOutputs compared =
      options_.thresholds.empty() ? with_even_thresholds(seen, options_.num_thresholds, LowestThreshold::below_zero)
                                  : with_thresholds(seen, options_.thresholds);
  std::vector<Value> all = sums_of_thresholds(compared, has_labels ? targets : of_one_label(targets),
                                              options_.multi_label ? std::span<const float>() : options_.label_weights);
  if (!has_labels || options_.multi_label) return all;
  // Without multi_label there is one curve, so the weighted counts of all labels are added.
  for (Value& one : all) one = holdfast::sum(one, {-1}, ReducedAxes::keep);
  return all;
}

double AUC::result(std::span<const double> sums, double) const {
  // Without multi_label the weights are in the counts.
  const bool has_weights = options_.multi_label && !options_.label_weights.empty();
  double areas = 0, weights = 0;
  std::size_t label = 0;
  for (const ThresholdCounts& counts : counts_of_thresholds(sums, static_cast<std::size_t>(options_.num_thresholds))) {
    const double weight = has_weights ? static_cast<double>(options_.label_weights[label++]) : 1;
    areas += weight * area_of(options_, counts);
    weights += weight;
  }
  return quotient(areas, weights);
}

OperatingPointMetric::OperatingPointMetric(const std::string& kind, const std::string& option, float value,
                                           const OperatingPointOptions& options)
    : BuiltInMetric(kind, options.name, operating_options(kind, option, value, options)),
      value_(value),
      options_(options) {}

std::vector<Value> OperatingPointMetric::sums(const Value& outputs, const Value& targets) const {
  check_equal_shapes(name(), outputs, targets);
  const std::optional<std::int64_t>& class_id = options_.class_id;
  const Value scores = of_one_label(class_id ? element_of_class(name(), outputs, *class_id) : outputs);
  const Value t = of_one_label(class_id ? element_of_class(name(), targets, *class_id) : targets);
  // As in Keras: a single threshold lies in the middle and not at an end.
  constexpr float kSingle = 0.5F;
  const ComparedOutputs compared = options_.num_thresholds == 1
                                       ? with_thresholds(scores, {&kSingle, 1})
                                       : with_even_thresholds(scores, options_.num_thresholds, LowestThreshold::zero);
  return sums_of_thresholds(compared, t, {});
}

PrecisionAtRecall::PrecisionAtRecall(float recall, const OperatingPointOptions& options)
    : OperatingPointMetric("precision_at_recall", "recall", recall, options) {}

double PrecisionAtRecall::result(std::span<const double> sums, double) const {
  return best_where(sums, value(), sensitivity_of, precision_of);
}

RecallAtPrecision::RecallAtPrecision(float precision, const OperatingPointOptions& options)
    : OperatingPointMetric("recall_at_precision", "precision", precision, options) {}

double RecallAtPrecision::result(std::span<const double> sums, double) const {
  return best_where(sums, value(), precision_of, sensitivity_of);
}

SensitivityAtSpecificity::SensitivityAtSpecificity(float specificity, const OperatingPointOptions& options)
    : OperatingPointMetric("sensitivity_at_specificity", "specificity", specificity, options) {}

double SensitivityAtSpecificity::result(std::span<const double> sums, double) const {
  return best_where(sums, value(), specificity_of, sensitivity_of);
}

SpecificityAtSensitivity::SpecificityAtSensitivity(float sensitivity, const OperatingPointOptions& options)
    : OperatingPointMetric("specificity_at_sensitivity", "sensitivity", sensitivity, options) {}

double SpecificityAtSensitivity::result(std::span<const double> sums, double) const {
  return best_where(sums, value(), sensitivity_of, specificity_of);
}

}  // namespace holdfast::metrics
