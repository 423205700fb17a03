#pragma once

// The share of samples whose largest output, the first of equals, is the class that the target names by its number.

#include "holdfast/nn/metric.h"

namespace holdfast {

class SparseCategoricalAccuracy : public Metric {
 public:
  explicit SparseCategoricalAccuracy(MetricOptions options = {});

  std::string configuration() const override;
  std::unique_ptr<Metric> clone() const override;
  float sum(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples) const override;
  void sum_on(compute::DeviceKernels& device, const DeviceBatch& batch) const override;
};

}  // namespace holdfast
