#pragma once

// Losses, metrics and optimizers of the host on a pretended device's memory.

#include <vector>

#include "compute/device_kernels.h"
#include "pretended_memory.h"

namespace holdfast {

class PretendedKernels final : public compute::DeviceKernels {
 public:
  explicit PretendedKernels(PretendedMemory& memory) : memory_(memory) {}

  void loss(const compute::LossShape& shape, const compute::RowArrays& arrays, float scale, float* gradient,
            float* sum) override;
  void metric(const compute::MetricShape& shape, const compute::RowArrays& arrays, float* sum) override;
  void sgd(const compute::SgdStep& step, std::size_t floats, float* parameters, const float* gradients,
           float* velocity) override;
  void adam(const compute::AdamStep& step, std::size_t floats, float* parameters, const float* gradients, float* m,
            float* v) override;
  void clip_values(float limit, std::size_t floats, const float* gradients, float* clipped) override;
  void clip_norms(std::span<const compute::NormRange> ranges, float limit, const float* gradients, float* clipped,
                  float* workspace) override;
  void update_moving(const float* sums, const float* count, std::size_t floats, float momentum, float* moving) override;
  void find_not_finite(const float* array, std::size_t floats, float* found) override;
  void clear(std::span<const Gap> gaps, float* arena) override;
  void check() override {}  // loss() has thrown already

 private:
  PretendedMemory& memory_;
};

}  // namespace holdfast
