// Optimizers on CUDA devices, each in one pass over parameters, gradients and slots, because the speed of
// memory limits them. The formula of an element is shared with the host (arithmetic/optimizers.h). Scalars
// that need powers come from the host. docs/decisions/optimizers.md

#include <algorithm>

#include "compute/arithmetic/gradient_clipping.h"
#include "compute/arithmetic/optimizers.h"
#include "compute/cuda/kernels/cuda_optimizers.h"
#include "compute/cuda/runtime/cuda_elements.cuh"

namespace holdfast::compute {
namespace {

// A pass is a functor with a run() of four elements and of one: run_pass() takes the first where all arrays are
// aligned.
struct AdamPass {
  AdamStep step;
  float* parameters;
  const float* gradients;
  float* m;
  float* v;

  template <int kCount>
  __device__ void run(std::size_t index) const {
    FloatVector<kCount> parameter = load<kCount>(parameters, index);
    const FloatVector<kCount> gradient = load<kCount>(gradients, index);
    FloatVector<kCount> first = load<kCount>(m, index);
    FloatVector<kCount> second = load<kCount>(v, index);
    for (int i = 0; i < kCount; ++i) adam_element(step, gradient.at[i], parameter.at[i], first.at[i], second.at[i]);
    store(parameters, index, parameter);
    store(m, index, first);
    store(v, index, second);
  }
};

struct SgdPass {
  float learning_rate;
  float* parameters;
  const float* gradients;

  template <int kCount>
  __device__ void run(std::size_t index) const {
    FloatVector<kCount> parameter = load<kCount>(parameters, index);
    const FloatVector<kCount> gradient = load<kCount>(gradients, index);
    for (int i = 0; i < kCount; ++i) sgd_element(learning_rate, gradient.at[i], parameter.at[i]);
    store(parameters, index, parameter);
  }
};

template <bool kNesterov>
struct MomentumPass {
  SgdStep step;
  float* parameters;
  const float* gradients;
  float* velocities;

  template <int kCount>
  __device__ void run(std::size_t index) const {
    FloatVector<kCount> parameter = load<kCount>(parameters, index);
    const FloatVector<kCount> gradient = load<kCount>(gradients, index);
    FloatVector<kCount> velocity = load<kCount>(velocities, index);
    for (int i = 0; i < kCount; ++i) {
      // At compile time, so the loop over a vector has no branch.
      if constexpr (kNesterov) {
        nesterov_element(step.learning_rate, step.momentum, gradient.at[i], parameter.at[i], velocity.at[i]);
      } else {
        momentum_element(step.learning_rate, step.momentum, gradient.at[i], parameter.at[i], velocity.at[i]);
      }
    }
    store(parameters, index, parameter);
    store(velocities, index, velocity);
  }
};

struct ClipPass {
  float limit;
  const float* gradients;
  float* clipped;

  template <int kCount>
  __device__ void run(std::size_t index) const {
    FloatVector<kCount> gradient = load<kCount>(gradients, index);
    for (int i = 0; i < kCount; ++i) gradient.at[i] = clipped_value(gradient.at[i], limit);
    store(clipped, index, gradient);
  }
};

struct MovingPass {
  const float* sums;
  const float* count;  // one number
  float momentum;
  float* moving;

  template <int kCount>
  __device__ void run(std::size_t index) const {
    // No sample contributed to these statistics, so there is nothing to follow. The count is read here, since the host
    // does not know it without a wait.
    if (*count == 0) return;
    for (std::size_t i = index; i < index + kCount; ++i) {
      moving[i] = moving_average(moving[i], momentum, sums[i], *count);
    }
  }
};

// Passed by value with the launch, so that no table on the device is needed. A launch takes 4 KiB of arguments on every
// device.
struct Gaps {
  static constexpr int kMost = 128;
  DeviceKernels::Gap at[kMost];
};

constexpr int kGapThreads = 32;

// One block for each gap. Most gaps are padding between arrays, and shorter than a warp.
__global__ void clear_kernel(const __grid_constant__ Gaps gaps, float* arena) {
  const DeviceKernels::Gap gap = gaps.at[blockIdx.x];
  for (std::size_t i = gap.begin + threadIdx.x; i < gap.end; i += kGapThreads) arena[i] = 0;
}

}  // namespace

void queue_sgd(const SgdStep& step, std::size_t floats, float* parameters, const float* gradients, float* velocity,
               cudaStream_t stream) {
  // Without momentum there is no slot, so the pass moves less memory.
  if (velocity == nullptr) {
    return run_pass("sgd", SgdPass{step.learning_rate, parameters, gradients}, floats, {parameters, gradients}, stream);
  }
  if (step.nesterov) {
    return run_pass("sgd with Nesterov momentum", MomentumPass<true>{step, parameters, gradients, velocity}, floats,
                    {parameters, gradients, velocity}, stream);
  }
  run_pass("sgd with momentum", MomentumPass<false>{step, parameters, gradients, velocity}, floats,
           {parameters, gradients, velocity}, stream);
}

void queue_adam(const AdamStep& step, std::size_t floats, float* parameters, const float* gradients, float* m, float* v,
                cudaStream_t stream) {
  run_pass("adam", AdamPass{step, parameters, gradients, m, v}, floats, {parameters, gradients, m, v}, stream);
}

void queue_clip_values(float limit, std::size_t floats, const float* gradients, float* clipped, cudaStream_t stream) {
  run_pass("clip_values", ClipPass{limit, gradients, clipped}, floats, {gradients, clipped}, stream);
}

void queue_update_moving(const float* sums, const float* count, std::size_t floats, float momentum, float* moving,
                         cudaStream_t stream) {
  run_pass("update_moving", MovingPass{sums, count, momentum, moving}, floats, {sums, moving}, stream);
}

void queue_clear(std::span<const DeviceKernels::Gap> gaps, float* arena, cudaStream_t stream) {
  // The arguments of one launch hold so many gaps and no more.
  while (!gaps.empty()) {
    const std::size_t count = std::min<std::size_t>(gaps.size(), Gaps::kMost);
    Gaps batch{};
    std::copy_n(gaps.begin(), count, batch.at);
    launch(clear_kernel, static_cast<unsigned>(count), kGapThreads, stream, batch, arena);
    check_launch("clear", {{"gaps", static_cast<std::int64_t>(count)}});
    gaps = gaps.subspan(count);
  }
}

}  // namespace holdfast::compute
