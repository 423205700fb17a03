// The calls of the CUDA runtime that kernels' host code makes, for memory of the host.

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>

#include "compute/cuda/cuda_error.h"

namespace holdfast::compute {

// Without the names that the libraries have for what went wrong.
void check_cuda(cudaError_t status, const std::string& call) {
  if (status != cudaSuccess) throw Error(ErrorCode::unavailable, call + " failed: " + std::to_string(status));
}

}  // namespace holdfast::compute

static constexpr std::size_t kAlignment = 256;

extern "C" {

cudaError_t cudaGetLastError() {
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t) {
  std::memset(memory, value, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  *memory = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  return cudaMalloc(memory, bytes);
}

cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
}
