#pragma once

// The mean of |output - target| over the elements of a sample (keras.metrics.MeanAbsoluteError), in the unit of the
// targets. Targets have the shape of the output; other spans are refused with Error{invalid_argument}. A NaN among them
// is one in the metric. The loss of this name is losses::MeanAbsoluteError (regression_losses.h).
//
//   Trainer trainer(replica, model, Adam{}, MeanSquaredError{}, {MeanAbsoluteError{}});
//   MeanAbsoluteError{{.name = "mae"}}   // "mae" and "val_mae" in the logs

#include "holdfast/nn/metric.h"

namespace holdfast {

class MeanAbsoluteError : public Metric {
 public:
  // The default name is "mean_absolute_error".
  explicit MeanAbsoluteError(MetricOptions options = {});

  // What Metric promises.
  std::string configuration() const override;
  std::unique_ptr<Metric> clone() const override;
  float sum(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples) const override;
  bool is_mean_of_elements() const override { return true; }
  bool describe_kernel(compute::MetricShape& kernel) const override;
};

namespace metrics {
using holdfast::MeanAbsoluteError;
}

}  // namespace holdfast
