#pragma once

// Losses with their gradients, each in one kernel that is queued in `stream`. See DeviceKernels and the classes of the
// same names in nn/.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "compute/cuda/runtime/cuda_sum_workspace.h"
#include "compute/device_kernels.h"

namespace holdfast::compute {

// The first sample with a label that does not exist. The upper half of the word is the sample's number, the lower half
// the label's bits, so the smallest word is that of the first sample. In device memory.
using BadLabel = unsigned long long;
inline constexpr BadLabel kNoBadLabel = ~BadLabel{0};

struct LossArrays : RowArrays {
  float* gradient;  // or null
  float* sum;
};

// A sample with a bad label is recorded in *bad_label and gets no gradient. The sum of losses is NaN then.
void queue_loss(const LossShape& shape, const LossArrays& arrays, float scale, SumWorkspace* workspace,
                BadLabel* bad_label, cudaStream_t stream);

}  // namespace holdfast::compute
