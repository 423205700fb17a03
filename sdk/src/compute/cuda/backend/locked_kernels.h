#pragma once

// CudaKernels that hold the stream lock while they queue: the device is the calling thread's current one, and no
// other thread queues work meanwhile.

#include "compute/cuda/backend/cuda_kernels.h"
#include "compute/cuda/runtime/cuda_memory_space.h"

namespace holdfast::compute {

class LockedKernels final : public DeviceKernels {
 public:
  // The caller must hold the stream lock of the memory's context.
  explicit LockedKernels(CudaMemorySpace& memory) : context_(memory.context()), kernels_(memory, context_.stream()) {}

  void loss(const LossShape& shape, const RowArrays& arrays, float scale, float* gradient, float* sum) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    kernels_.loss(shape, arrays, scale, gradient, sum);
  }

  void metric(const MetricShape& shape, const RowArrays& arrays, float* sum) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    kernels_.metric(shape, arrays, sum);
  }

  void sgd(const SgdStep& step, std::size_t floats, float* parameters, const float* gradients,
           float* velocity) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    kernels_.sgd(step, floats, parameters, gradients, velocity);
  }

  void adam(const AdamStep& step, std::size_t floats, float* parameters, const float* gradients, float* m,
            float* v) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    kernels_.adam(step, floats, parameters, gradients, m, v);
  }

  void clip_values(float limit, std::size_t floats, const float* gradients, float* clipped) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    kernels_.clip_values(limit, floats, gradients, clipped);
  }

  void clip_norms(std::span<const NormRange> ranges, float limit, const float* gradients, float* clipped,
                  float* workspace) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    kernels_.clip_norms(ranges, limit, gradients, clipped, workspace);
  }

  void update_moving(const float* sums, const float* count, std::size_t floats, float momentum,
                     float* moving) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    kernels_.update_moving(sums, count, floats, momentum, moving);
  }

  void find_not_finite(const float* array, std::size_t floats, float* found) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    kernels_.find_not_finite(array, floats, found);
  }

  void clear(std::span<const Gap> gaps, float* arena) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    kernels_.clear(gaps, arena);
  }

  // Waits, so it must not hold the lock; the memory space takes it where needed.
  void check() override { kernels_.check(); }

 private:
  CudaContext& context_;
  CudaKernels kernels_;
};

}  // namespace holdfast::compute
