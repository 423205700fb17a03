// Each has one sum, of which Metric::result() reports the mean. The losses of these names share the formulas.

#include "holdfast/nn/hinge_metrics.h"

#include "nn/losses/loss_values.h"

namespace holdfast::metrics {

Hinge::Hinge(const MetricOptions& options) : BuiltInMetric("hinge", options.name) {}

std::vector<Value> Hinge::sums(const Value& outputs, const Value& targets) const {
  return {hinge(outputs, targets)};
}

SquaredHinge::SquaredHinge(const MetricOptions& options) : BuiltInMetric("squared_hinge", options.name) {}

std::vector<Value> SquaredHinge::sums(const Value& outputs, const Value& targets) const {
  return {square(hinge(outputs, targets))};
}

CategoricalHinge::CategoricalHinge(const MetricOptions& options) : BuiltInMetric("categorical_hinge", options.name) {}

std::vector<Value> CategoricalHinge::sums(const Value& outputs, const Value& targets) const {
  // One number a position, where the other two have one for each element.
  return {categorical_hinge(outputs, targets)};
}

}  // namespace holdfast::metrics
