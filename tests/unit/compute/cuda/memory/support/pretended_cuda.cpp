#include "unit/compute/cuda/memory/support/pretended_cuda.h"

#include <cublasLt.h>
#include <cudnn_graph.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "compute/cuda/cuda_arrays.h"
#include "compute/cuda/cuda_digester.h"

struct CUstream_st {};
struct CUevent_st {
  int pending_records = 0;
};
struct cublasLtContext {};
struct cudnnContext {};

namespace holdfast::pretended_cuda {
namespace {

struct State {
  Device device;
  std::deque<std::function<void()>> queue;
  std::map<void*, std::size_t> allocated;
  std::map<const std::byte*, std::size_t> pinned;
  std::map<const std::byte*, std::size_t> registered;
  cudaError_t last_error = cudaSuccess;
};

State& state() {
  static State state;
  return state;
}

cudaError_t remember(cudaError_t status) {
  if (status != cudaSuccess) state().last_error = status;
  return status;
}

// Sticky: everything fails behind the first failure.
cudaError_t queued(std::function<void()> action) {
  if (state().device.failure != cudaSuccess) return remember(state().device.failure);
  state().queue.push_back(std::move(action));
  return cudaSuccess;
}

bool lies_in(const std::map<const std::byte*, std::size_t>& ranges, const void* address) {
  const auto* const byte = static_cast<const std::byte*>(address);
  auto after = ranges.upper_bound(byte);
  if (after == ranges.begin()) return false;
  --after;
  return byte < after->first + after->second;
}

std::map<const compute::CudaDigester*, Digest>& digests() {
  static std::map<const compute::CudaDigester*, Digest> digests;
  return digests;
}

}  // namespace

Device& device() {
  return state().device;
}

void reset() {
  state().device = {};
  state().queue.clear();
  state().last_error = cudaSuccess;
}

}  // namespace holdfast::pretended_cuda

using holdfast::pretended_cuda::device;
using holdfast::pretended_cuda::lies_in;
using holdfast::pretended_cuda::queued;
using holdfast::pretended_cuda::remember;
using holdfast::pretended_cuda::state;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::strcpy(properties->name, "Pretended");
  properties->major = 9;
  properties->multiProcessorCount = 132;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int) {
  return remember(device().failure);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new CUstream_st;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  ++event->pending_records;
  return queued([event] { --event->pending_records; });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (device().failure != cudaSuccess) return remember(device().failure);
  while (event->pending_records > 0) {
    if (device().hangs) return remember(cudaErrorNotReady);
    const std::function<void()> next = std::move(state().queue.front());
    state().queue.pop_front();
    next();
  }
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  if (bytes > device().total_bytes - device().used_bytes) return remember(cudaErrorMemoryAllocation);
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(*memory, 0xFF, bytes);
  state().allocated[*memory] = bytes;
  device().used_bytes += bytes;
  return cudaSuccess;
}

cudaError_t cudaFree(void* memory) {
  device().freed_too_early |= !state().queue.empty();
  device().used_bytes -= state().allocated[memory];
  state().allocated.erase(memory);
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  *free_bytes = device().total_bytes - device().used_bytes;
  *total_bytes = device().total_bytes;
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
  const void* const on_host = kind == cudaMemcpyHostToDevice ? from : to;
  if (kind != cudaMemcpyDeviceToDevice) {
    device().direct_copies += lies_in(state().registered, on_host);
    device().staged_copies += lies_in(state().pinned, on_host);
  }
  return queued([=] { std::memcpy(to, from, bytes); });
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t) {
  return queued([=] { std::memset(memory, value, bytes); });
}

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  *memory = std::malloc(bytes);
  state().pinned[static_cast<const std::byte*>(*memory)] = bytes;
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* memory) {
  state().pinned.erase(static_cast<const std::byte*>(memory));
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned) {
  if (device().refuses_to_register) return remember(cudaErrorMemoryAllocation);
  state().registered[static_cast<const std::byte*>(memory)] = bytes;
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* memory) {
  state().registered.erase(static_cast<const std::byte*>(memory));
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  const cudaError_t last = state().last_error;
  // What ends the use of the device is not forgotten.
  state().last_error = device().failure;
  return last;
}

const char* cudaGetErrorName(cudaError_t status) {
  return status == cudaErrorIllegalAddress ? "cudaErrorIllegalAddress" : "cudaError";
}

const char* cudaGetErrorString(cudaError_t) {
  return "an error";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion() {
  return 130100;
}

const char* cublasLtGetStatusName(cublasStatus_t) {
  return "a status";
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t) {
  return CUDNN_STATUS_SUCCESS;
}

size_t cudnnGetVersion() {
  return 91900;
}

const char* cudnnGetErrorString(cudnnStatus_t) {
  return "a status";
}

void cudnnGetLastErrorString(char*, size_t) {}

}  // extern "C"

namespace holdfast::compute {

void add_arrays(const float* summand, float* sum, std::size_t floats, cudaStream_t) {
  static_cast<void>(queued([=] {
    for (std::size_t i = 0; i < floats; ++i) sum[i] += summand[i];
  }));
}

void gather_rows(const float* from, std::size_t row_floats, const std::int64_t* rows, std::size_t row_count, float* to,
                 cudaStream_t) {
  static_cast<void>(queued([=] {
    for (std::size_t i = 0; i < row_count; ++i) {
      std::copy_n(from + static_cast<std::size_t>(rows[i]) * row_floats, row_floats, to + i * row_floats);
    }
  }));
}

void flag_not_finite(const float* values, std::size_t floats, std::uint32_t* flag, cudaStream_t) {
  static_cast<void>(queued([=] {
    for (std::size_t i = 0; i < floats; ++i) {
      if (!std::isfinite(values[i])) *flag = 1;
    }
  }));
}

CudaDigester::~CudaDigester() {
  pretended_cuda::digests().erase(this);
}

void CudaDigester::queue(std::span<const std::span<const float>> arrays, cudaStream_t) {
  static_cast<void>(queued([this, arrays = std::vector(arrays.begin(), arrays.end())] {
    DigestBuilder builder;
    for (const std::span<const float> array : arrays) builder.update(std::as_bytes(array));
    pretended_cuda::digests()[this] = builder.finish();
  }));
}

Digest CudaDigester::result() const {
  return pretended_cuda::digests().at(this);
}

}  // namespace holdfast::compute
