// What products of matrices need of a device, in the host's memory: a workspace, and what is done to columns.

#include <cstdlib>
#include <cstring>

#include "compute/cuda/columns.h"
#include "compute/cuda/cuda_context.h"
#include "gpu/support/gpu_test.h"

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

}  // extern "C"

namespace holdfast::compute {

CudaContext::CudaContext(int device) : device_(device) {}

CudaContext::~CudaContext() = default;

CudaContext::Turn::Turn(CudaContext& context) : lock_(context.mutex_) {}

// No more than was asked for, and nothing in it that could pass for a number.
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

void check_launch(const std::string&) {}

void add_to_columns(cudaStream_t, const std::string&, const MatrixExtent& extent, const float* bias, float* matrix) {
  for (std::int64_t i = 0; i < extent.rows * extent.columns; ++i) matrix[i] += bias[i % extent.columns];
}

void sum_columns(cudaStream_t, const std::string&, const MatrixExtent& extent, const float* matrix, std::byte*,
                 float* sums) {
  for (std::int64_t column = 0; column < extent.columns; ++column) {
    double sum = 0;
    for (std::int64_t row = 0; row < extent.rows; ++row) sum += matrix[row * extent.columns + column];
    sums[column] = static_cast<float>(sum);
  }
}

std::size_t column_sums_bytes(const MatrixExtent& extent, int sums_per_column) {
  return static_cast<std::size_t>(extent.columns * sums_per_column) * sizeof(double);
}

}  // namespace holdfast::compute

namespace holdfast {

// There is no whole one.
std::unique_ptr<compute::Backend> backend_under_test(Precision) {
  return nullptr;
}

}  // namespace holdfast
