#pragma once

// Losses with their gradients, each in one kernel that is queued in `stream`. See DeviceKernels and the classes of the
// same names in nn/.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "compute/cuda/runtime/cuda_sum_workspace.h"
#include "compute/device_kernels.h"

namespace holdfast::compute {

// The first row with a label that does not exist, or with a target beyond 0 and 1. The upper half of the word
// is the row's number, the lower half the bits of label or target, so the smallest word is that of the first row. In
// device memory.
using BadLabel = unsigned long long;
inline constexpr BadLabel kNoBadLabel = ~BadLabel{0};

struct LossArrays : RowArrays {
  float* gradient;  // or null
  float* sum;
};

// A row with a bad label is recorded in *bad_label and gets no gradient for it. The sum of losses is NaN then.
void queue_loss(const LossShape& shape, const LossArrays& arrays, float scale, SumWorkspace* workspace,
                BadLabel* bad_label, cudaStream_t stream);

}  // namespace holdfast::compute
