#include "gpu/trainer/support/running_sum_kernel.h"

#include <cuda_runtime.h>

namespace holdfast {
namespace {

// One thread a row: the order of additions is that of the host.
__global__ void running_sum(const float* x, float* y, long long rows, long long length, bool is_reversed) {
  const long long row = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (long long i = 0; i < length; ++i) {
    const long long at = row * length + (is_reversed ? length - 1 - i : i);
    y[at] = sum += x[at];
  }
}

}  // namespace

int queue_running_sum(const float* x, float* y, long long rows, long long length, bool is_reversed, void* stream) {
  const long long blocks = (rows + 127) / 128;
  running_sum<<<static_cast<unsigned>(blocks), 128, 0, static_cast<cudaStream_t>(stream)>>>(x, y, rows, length,
                                                                                            is_reversed);
  return static_cast<int>(cudaGetLastError());
}

}  // namespace holdfast
