#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "compute/cuda/runtime/cuda_error.h"

namespace holdfast {

// An array of zeros on the current device.
inline std::shared_ptr<float[]> device_floats(std::size_t floats) {
  float* memory = nullptr;
  const std::size_t bytes = std::max<std::size_t>(floats, 1) * sizeof(float);
  compute::check_cuda(cudaMalloc(reinterpret_cast<void**>(&memory), bytes), "cudaMalloc");
  compute::check_cuda(cudaMemset(memory, 0, bytes), "cudaMemset");
  compute::check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  return {memory, [](float* given_back) { cudaFree(given_back); }};
}

// Any stream may read the array afterwards. From pageable memory cudaMemcpy() may return before the last bytes have
// arrived, and the streams of collectives do not wait for its stream.
inline void to_device(std::span<const float> from, float* to) {
  compute::check_cuda(cudaMemcpy(to, from.data(), from.size_bytes(), cudaMemcpyHostToDevice), "cudaMemcpy");
  compute::check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

inline std::vector<float> to_host(const float* from, std::size_t floats) {
  std::vector<float> values(floats);
  compute::check_cuda(cudaMemcpy(values.data(), from, floats * sizeof(float), cudaMemcpyDeviceToHost), "cudaMemcpy");
  return values;
}

}  // namespace holdfast
