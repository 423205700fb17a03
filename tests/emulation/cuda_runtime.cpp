// The calls of the CUDA runtime that the host code of kernels makes, for memory of the host.

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "compute/cuda/runtime/cuda_error.h"
#include "emulation/grid.h"

namespace holdfast::compute {

// The errors do not have the libraries' own names of failures.
void check_cuda(cudaError_t status, const std::string& call) {
  if (status != cudaSuccess) throw Error(ErrorCode::unavailable, call + " failed: " + std::to_string(status));
}

}  // namespace holdfast::compute

static constexpr std::size_t kAlignment = 256;

static thread_local int current_device = 0;
static thread_local cudaError_t last_error = cudaSuccess;
static char the_stream = 0;

// The stream and the event of device 0.
static cudaError_t on_the_device() {
  if (current_device != 0) last_error = cudaErrorInvalidResourceHandle;
  return current_device == 0 ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

namespace holdfast::emulation {

bool can_launch() {
  return on_the_device() == cudaSuccess;
}

}  // namespace holdfast::emulation

extern "C" {

cudaError_t cudaGetLastError() {
  return std::exchange(last_error, cudaSuccess);
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

// Another device may be made current, but nothing else can be done with it.
cudaError_t cudaSetDevice(int device) {
  current_device = device;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 2;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* place, int bytes, int) {
  std::strncpy(place, "0000:00:00.0", static_cast<std::size_t>(bytes));
  return cudaSuccess;
}

// All streams are one: queued work has already happened.
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  *stream = reinterpret_cast<cudaStream_t>(&the_stream);
  return on_the_device();
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) {
  return on_the_device();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(&the_stream);
  return on_the_device();
}

cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) {
  return on_the_device();
}

cudaError_t cudaEventQuery(cudaEvent_t) {
  return cudaSuccess;
}

const char* cudaGetErrorString(cudaError_t) {
  return "an error";
}

cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  std::memset(memory, value, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t) {
  std::memset(memory, value, bytes);
  return on_the_device();
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
