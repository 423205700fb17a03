#pragma once

// loss = mean((output - target)^2) over a sample's elements; its gradient is 2 (output - target) / elements.

#include "holdfast/nn/loss.h"

namespace holdfast {

class MeanSquaredError : public Loss {
 public:
  std::string name() const override;
  std::string configuration() const override;
  std::unique_ptr<Loss> clone() const override;
  // The output's shape.
  Shape target_shape(const Shape& output) const override;
  float evaluate(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples, float scale,
                 std::span<float> gradient) const override;
  void evaluate_on(compute::DeviceKernels& device, const DeviceBatch& batch, float scale,
                   float* gradient) const override;
};

}  // namespace holdfast
