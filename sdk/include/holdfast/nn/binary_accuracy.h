#pragma once

// The share of elements whose output lies on the right side of the threshold: above it exactly if the
// target is 1 (keras.metrics.BinaryAccuracy). For the outputs of a sigmoid; for logits, use a threshold
// of 0. Outputs and targets have one shape, and a sample of several elements counts with the share of them
// that is right. A target other than 0 and 1 is never right. A NaN among the outputs counts as 0.
//
//   BinaryAccuracy{{.threshold = 0, .name = "accuracy"}}

#include "holdfast/nn/metric.h"

namespace holdfast {

// Options of the metric. Both are part of configuration(), so a run refuses to resume with other ones.
// The name is that in the logs, with "val_" before it for validation data.
struct BinaryAccuracyOptions {
  float threshold = 0.5F;  // 0 if the outputs are logits
  std::string name{};      // the name in the logs; empty: "binary_accuracy"
};

class BinaryAccuracy : public Metric {
 public:
  // Throws Error{invalid_argument} for a threshold that is not finite: no output would lie above a NaN, and nothing
  // else would tell.
  explicit BinaryAccuracy(BinaryAccuracyOptions options = {});

  // What Metric promises.
  std::string configuration() const override;
  std::unique_ptr<Metric> clone() const override;
  float sum(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples) const override;
  bool is_mean_of_elements() const override { return true; }
  bool describe_kernel(compute::MetricShape& kernel) const override;

 private:
  float threshold_;
};

namespace metrics {
using holdfast::BinaryAccuracy;
}

}  // namespace holdfast
