#pragma once

// The share of elements whose output lies on the right side of the threshold: above it exactly if the
// target is 1 (keras.metrics.BinaryAccuracy). For the outputs of a sigmoid; for logits, use a threshold
// of 0.
//
//   BinaryAccuracy{{.threshold = 0, .name = "accuracy"}}

#include "holdfast/nn/metric.h"

namespace holdfast {

// Options of the metric; both are part of configuration().
struct BinaryAccuracyOptions {
  float threshold = 0.5F;  // 0 if the outputs are logits
  std::string name{};      // the name in the logs; empty: "binary_accuracy"
};

class BinaryAccuracy : public Metric {
 public:
  // Throws Error{invalid_argument} for a threshold that is not finite.
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
