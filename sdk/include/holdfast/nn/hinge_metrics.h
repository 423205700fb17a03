#pragma once

// The hinge losses as metrics, as keras.metrics defines them (Keras 3). hinge_losses.h has formulas, labels and shapes.
//
//   Trainer trainer(replica, model, SGD{0.1F}, losses::SquaredHinge{}, {metrics::Hinge{}});
//
// What is reported is the mean over all samples of an epoch. The name is that of Keras, "hinge", unless the options
// have another one. Each metric is a function of values (value_metric.h).

#include "holdfast/nn/value_metric.h"

namespace holdfast::metrics {

// losses::Hinge
class Hinge final : public BuiltInMetric {
 public:
  explicit Hinge(const MetricOptions& options = {});

  // What ValueMetric promises.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<Hinge>(*this); }
};

// losses::SquaredHinge
class SquaredHinge final : public BuiltInMetric {
 public:
  explicit SquaredHinge(const MetricOptions& options = {});

  // What ValueMetric promises.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<SquaredHinge>(*this); }
};

// losses::CategoricalHinge
class CategoricalHinge final : public BuiltInMetric {
 public:
  explicit CategoricalHinge(const MetricOptions& options = {});

  // What ValueMetric promises.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<CategoricalHinge>(*this); }
};

}  // namespace holdfast::metrics
