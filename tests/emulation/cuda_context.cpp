// The part of CudaContext that operations need, in the host's memory.

#include "compute/cuda/runtime/cuda_context.h"

#include <cstdlib>
#include <cstring>

extern "C" {

cudaError_t cudaStreamDestroy(cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) {
  return cudaSuccess;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t) {
  return CUDNN_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) {
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"

namespace holdfast::compute {

CudaContext::CudaContext(int device) : device_(device) {}

CudaContext::~CudaContext() = default;

CudaContext::StreamLock::StreamLock(CudaContext& context) : lock_(context.mutex_) {}

// Exactly as large as asked for, and filled with NaN.
void CudaContext::reserve_workspace(std::size_t bytes) {
  if (bytes <= workspace_bytes_) return;
  workspace_blocks_.push_back(allocate(bytes));
  workspace_bytes_ = bytes;
}

std::shared_ptr<std::byte[]> CudaContext::allocate(std::size_t bytes) {
  constexpr std::size_t kAlignment = 256;
  void* const memory = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  std::memset(memory, 0xFF, bytes);
  return {static_cast<std::byte*>(memory), [](std::byte* block) { std::free(block); }};
}

}  // namespace holdfast::compute
