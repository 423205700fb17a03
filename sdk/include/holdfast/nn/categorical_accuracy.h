#pragma once

// The share of samples whose largest output stands at the same place as the largest target
// (keras.metrics.CategoricalAccuracy), for targets that are one-hot rows. Among equal numbers the first
// one counts.
//
//   CategoricalAccuracy{{.name = "accuracy"}}

#include "holdfast/nn/metric.h"

namespace holdfast {

class CategoricalAccuracy : public Metric {
 public:
  // The default name is "categorical_accuracy".
  explicit CategoricalAccuracy(MetricOptions options = {});

  // What Metric promises.
  std::string configuration() const override;
  std::unique_ptr<Metric> clone() const override;
  float sum(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples) const override;
  // The axes before the classes. A sample counts with the share of its positions that are right.
  std::size_t position_axes(const Shape& output) const override;
  bool describe_kernel(compute::MetricShape& kernel) const override;
};

namespace metrics {
using holdfast::CategoricalAccuracy;
}

}  // namespace holdfast
