#pragma once

// The share of a sample's elements whose output is above the threshold exactly where the target is 1.

#include "holdfast/nn/metric.h"

namespace holdfast {

struct BinaryAccuracyOptions {
  float threshold = 0.5F;  // 0 for outputs that are logits
  std::string name{};      // under which the metric is logged; empty: the metric's own
};

class BinaryAccuracy : public Metric {
 public:
  // Throws Error{invalid_argument} for a threshold that is not finite.
  explicit BinaryAccuracy(BinaryAccuracyOptions options = {});

  std::string configuration() const override;
  std::unique_ptr<Metric> clone() const override;
  float sum(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples) const override;
  void sum_on(compute::DeviceKernels& device, const DeviceBatch& batch) const override;

 private:
  float threshold_;
};

}  // namespace holdfast
