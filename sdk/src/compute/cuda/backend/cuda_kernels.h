#pragma once

// Losses, metrics and optimizers on a CUDA device. Each call except check() queues one or a few kernels and returns.
// Arrays must not overlap, unless the call says so. Nothing is allocated after construction, so all launches except
// those of check() may be recorded into a graph.

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "compute/device_kernels.h"
#include "holdfast/core/memory_space.h"

namespace holdfast::compute {

class CudaKernels final : public DeviceKernels {
 public:
  // `stream` is the stream of `memory`, which must outlive this object.
  CudaKernels(MemorySpace& memory, cudaStream_t stream);
  ~CudaKernels() override;

  void loss(const LossShape& shape, const RowArrays& arrays, float scale, float* gradient, float* sum) override;
  void metric(const MetricShape& shape, const RowArrays& arrays, float* sum) override;
  void sgd(const SgdStep& step, std::size_t floats, float* parameters, const float* gradients,
           float* velocity) override;
  void adam(const AdamStep& step, std::size_t floats, float* parameters, const float* gradients, float* m,
            float* v) override;
  void clip_values(float limit, std::size_t floats, const float* gradients, float* clipped) override;
  void clip_norms(std::span<const NormRange> ranges, float limit, const float* gradients, float* clipped,
                  float* workspace) override;
  void update_moving(const float* sums, const float* count, std::size_t floats, float momentum, float* moving) override;
  void find_not_finite(const float* array, std::size_t floats, float* found) override;
  void clear(std::span<const Gap> gaps, float* arena) override;
  void check() override;

 private:
  struct Workspace;

  Workspace* workspace() const;
  void forget_bad_labels();
  // Where a loss of this shape reports bad labels.
  std::size_t place_of_labels(const LossShape& shape);

  MemorySpace& memory_;
  const cudaStream_t stream_;
  const std::shared_ptr<float[]> workspace_;
  // One for each kind and number of outputs, for the sentence of check(), which comes later than the loss.
  std::vector<LossShape> checked_;
};

}  // namespace holdfast::compute
