#pragma once

// Gradient clipping by norms, with the bits of the host; see DeviceKernels. Queued in `stream`.

#include <cuda_runtime_api.h>

#include <span>

#include "compute/device_kernels.h"

namespace holdfast::compute {

void queue_clip_norms(std::span<const NormRange> ranges, float limit, const float* gradients, float* clipped,
                      float* workspace, cudaStream_t stream);

}  // namespace holdfast::compute
