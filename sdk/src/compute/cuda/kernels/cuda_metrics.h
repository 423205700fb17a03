#pragma once

// Metrics, each computed and summed over samples by one kernel that is queued in `stream`. See DeviceKernels and the
// classes of the same names in nn/.

#include <cuda_runtime_api.h>

#include "compute/cuda/runtime/cuda_sum_workspace.h"
#include "compute/device_kernels.h"

namespace holdfast::compute {

void queue_metric(const MetricShape& shape, const RowArrays& arrays, float* sum, SumWorkspace* workspace,
                  cudaStream_t stream);

}  // namespace holdfast::compute
