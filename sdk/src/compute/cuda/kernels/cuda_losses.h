#pragma once

// Losses with their gradients in one kernel each, queued in `stream`; see DeviceKernels and the classes of nn/ that
// they are the counterparts of.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "compute/cuda/runtime/cuda_sum_workspace.h"
#include "compute/device_kernels.h"

namespace holdfast::compute {

// The first sample with a label that is none: its number in the upper half and the label's bits in the lower one, so
// that the smallest of these words is that of the first sample. In device memory.
using BadLabel = unsigned long long;
inline constexpr BadLabel kNoBadLabel = ~BadLabel{0};

struct LossArrays {
  const float* outputs;
  const float* targets;
  float* gradient;  // or null
  float* sum;
};

// A sample with a bad label is told of in *bad_label and has no gradient; the sum of losses is not a number then.
void queue_loss(const LossShape& shape, const LossArrays& arrays, float scale, SumWorkspace* workspace,
                BadLabel* bad_label, cudaStream_t stream);

}  // namespace holdfast::compute
