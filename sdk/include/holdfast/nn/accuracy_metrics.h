#pragma once

// Accuracies, as keras.metrics defines them (Keras 3): the share of samples, or of positions, that are right. Those of
// the best class alone have headers of their own (categorical_accuracy.h, sparse_categorical_accuracy.h,
// binary_accuracy.h), and are in the namespace metrics, too.
//
//   Trainer trainer(replica, model, Adam{}, SparseCategoricalCrossentropy{{.from_logits = true}},
//                   {metrics::SparseTopKCategoricalAccuracy{{.k = 3, .name = "top3"}}});
//
// The last axis of the outputs has the classes, axes before it are positions. Each metric is a function of values
// (value_metric.h): it is computed where the model is, and takes weights of samples and of positions.

#include <cstdint>

#include "holdfast/nn/binary_accuracy.h"
#include "holdfast/nn/categorical_accuracy.h"
#include "holdfast/nn/sparse_categorical_accuracy.h"
#include "holdfast/nn/value_metric.h"

namespace holdfast::metrics {

// The share of elements whose output is the target itself.
class Accuracy final : public BuiltInMetric {
 public:
  explicit Accuracy(const MetricOptions& options = {});

  // What ValueMetric promises.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<Accuracy>(*this); }
};

// Options of the metrics of the k largest classes.
struct TopKOptions {
  std::int64_t k = 5;  // at least 1, and at most the number of classes
  std::string name{};  // the name in the logs; empty: that of the class
};

// Whether less than k outputs are larger than that of the right class, which is the first largest target. So outputs
// that are equal to it do not count against it, as in Keras. A NaN counts as larger than any number, and is never
// right.
class TopKCategoricalAccuracy final : public BuiltInMetric {
 public:
  // Throws Error{invalid_argument} for a k below 1.
  explicit TopKCategoricalAccuracy(const TopKOptions& options = {});
  // Throws Error{invalid_argument} for fewer than k classes.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<TopKCategoricalAccuracy>(*this); }

 private:
  std::int64_t k_;
};

// The same with class numbers as targets. A target that no class has is a miss.
class SparseTopKCategoricalAccuracy final : public BuiltInMetric {
 public:
  // Both throw as those of TopKCategoricalAccuracy.
  explicit SparseTopKCategoricalAccuracy(const TopKOptions& options = {});

  // What ValueMetric promises.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<SparseTopKCategoricalAccuracy>(*this); }

 private:
  std::int64_t k_;
};

}  // namespace holdfast::metrics
