// Each count is a sum of its own, with `where` in place of products: a target of any number but 0 is positive, and a
// NaN among the outputs is larger than no threshold.

#include "holdfast/nn/confusion_metrics.h"

#include <fmt/format.h>

#include <cmath>

#include "core/json_text.h"
#include "holdfast/base/error.h"
#include "nn/losses/loss_values.h"

namespace holdfast::metrics {
namespace {

std::string confusion_options(const std::string& kind, const PrecisionOptions& options) {
  if (!std::isfinite(options.threshold)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} was given .threshold = {}; it is a finite number", kind, options.threshold));
  }
  // The name of the member is Keras's, which may be a list there.
  const std::string threshold = fmt::format(R"("thresholds":{})", json_number(options.threshold));
  if (!options.class_id) return threshold;
  if (*options.class_id < 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} was given .class_id = {}; classes are counted from 0", kind, *options.class_id));
  }
  return fmt::format(R"({},"class_id":{})", threshold, *options.class_id);
}

PrecisionOptions with_all_classes(const CountOptions& options) {
  return {.threshold = options.threshold, .name = options.name};
}

double ratio(double part, double rest) {
  return part + rest == 0 ? 0 : part / (part + rest);
}

}  // namespace

ConfusionMetric::ConfusionMetric(const std::string& kind, const PrecisionOptions& options)
    : BuiltInMetric(kind, options.name, confusion_options(kind, options)),
      threshold_(options.threshold),
      class_id_(options.class_id) {}

ConfusionMetric::Elements ConfusionMetric::elements_of(const Value& outputs, const Value& targets) const {
  if (!class_id_) return {less(threshold_, outputs), targets};
  const std::int64_t classes = outputs.shape().rank() == 0 ? 1 : outputs.shape().extents().back();
  if (*class_id_ >= classes) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} was given .class_id = {}, but the outputs have {} classes, counted from 0", name(),
                            *class_id_, classes));
  }
  return {less(threshold_, element_of_last_axis(outputs, *class_id_)), element_of_last_axis(targets, *class_id_)};
}

TruePositives::TruePositives(const CountOptions& options)
    : ConfusionMetric("true_positives", with_all_classes(options)) {}

std::vector<Value> TruePositives::sums(const Value& outputs, const Value& targets) const {
  const Elements of = elements_of(outputs, targets);
  return {where(of.targets, of.predicted, 0.0F)};
}

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
  return {where(of.targets, of.predicted, 0.0F), where(of.targets, 0.0F, of.predicted)};
}

double Precision::result(std::span<const double> sums, double) const {
  return ratio(sums[0], sums[1]);
}

Recall::Recall(const PrecisionOptions& options) : ConfusionMetric("recall", options) {}

std::vector<Value> Recall::sums(const Value& outputs, const Value& targets) const {
  const Elements of = elements_of(outputs, targets);
  return {where(of.targets, of.predicted, 0.0F), where(of.targets, 1.0F - of.predicted, 0.0F)};
}

double Recall::result(std::span<const double> sums, double) const {
  return ratio(sums[0], sums[1]);
}

}  // namespace holdfast::metrics
