#pragma once

// The share of samples whose largest output is that of the target's class
// (keras.metrics.SparseCategoricalAccuracy), for targets that are class numbers. Among equal outputs
// the first one counts.
//
//   SparseCategoricalAccuracy{{.name = "accuracy"}}

#include "holdfast/nn/metric.h"

namespace holdfast {

class SparseCategoricalAccuracy : public Metric {
 public:
  // The default name is "sparse_categorical_accuracy".
  explicit SparseCategoricalAccuracy(MetricOptions options = {});

  // What Metric promises.
  std::string configuration() const override;
  std::unique_ptr<Metric> clone() const override;
  float sum(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples) const override;
  // The axes before the classes. A sample counts with the share of its positions that are right.
  std::size_t position_axes(const Shape& output) const override;
  bool describe_kernel(compute::MetricShape& kernel) const override;
};

namespace metrics {
using holdfast::SparseCategoricalAccuracy;
}

}  // namespace holdfast
