#pragma once

// Steps of optimizers in one pass over memory, with the bits of the host. Also gradient clipping by values, moving
// averages and gaps. All work is queued in `stream`; see DeviceKernels.

#include <cuda_runtime_api.h>

#include "compute/device_kernels.h"

namespace holdfast::compute {

void queue_sgd(const SgdStep& step, std::size_t floats, float* parameters, const float* gradients, float* velocity,
               cudaStream_t stream);
void queue_adam(const AdamStep& step, std::size_t floats, float* parameters, const float* gradients, float* m, float* v,
                cudaStream_t stream);
void queue_clip_values(float limit, std::size_t floats, const float* gradients, float* clipped, cudaStream_t stream);
void queue_update_moving(const float* sums, const float* count, std::size_t floats, float momentum, float* moving,
                         cudaStream_t stream);
void queue_clear(std::span<const DeviceKernels::Gap> gaps, float* arena, cudaStream_t stream);

}  // namespace holdfast::compute
