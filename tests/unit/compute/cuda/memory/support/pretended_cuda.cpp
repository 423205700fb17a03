// Streams are queues of actions. Polling an event runs the actions before it, unless the device hangs or a copy engine
// is occupied by a stream that does not run.

#include "unit/compute/cuda/memory/support/pretended_cuda.h"

#include <cublasLt.h>
#include <cudnn_graph.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "compute/cuda/runtime/cuda_arrays.h"
#include "compute/cuda/runtime/cuda_digester.h"
#include "compute/cuda/runtime/small_copies.h"

namespace holdfast::pretended_cuda {

// One action of a stream.
struct Action {
  std::function<void()> act;
  cudaMemcpyKind engine = cudaMemcpyDeviceToDevice;  // that copies; not used from device to device
  std::uint64_t copy = 0;                            // its number among all copies ever queued
};

}  // namespace holdfast::pretended_cuda

struct CUgraph_st {
  std::vector<std::function<void()>> actions;
  bool is_spoilt = false;  // a call that cannot be captured was made
};
// A launch owns the graph that it runs. A graph that is destroyed meanwhile is freed after the launch, as in cuda.h.
struct CUgraphExec_st {
  std::shared_ptr<const std::vector<std::function<void()>>> actions;
};
struct CUstream_st {
  std::unique_ptr<CUgraph_st> captured;  // null if actions are queued
  std::deque<holdfast::pretended_cuda::Action> queue;
  std::uint64_t queued = 0;  // how many actions so far
  std::uint64_t done = 0;    // how many of them are done
};
struct CUevent_st {
  cudaStream_t stream = nullptr;  // in which it was recorded last
  std::uint64_t position = 0;     // in that stream
  int looks = 0;                  // how often it was polled before it was reached
};
struct cublasLtContext {};
struct cudnnContext {};

namespace holdfast::pretended_cuda {
namespace {

struct State {
  std::recursive_mutex mutex;  // guards all members
  Device device;
  std::vector<cudaStream_t> streams;
  std::map<void*, std::size_t> allocated;
  std::map<const std::byte*, std::size_t> pinned;
  std::map<const std::byte*, std::size_t> registered;
  cudaError_t last_error = cudaSuccess;
  std::uint64_t copies = 0;  // how many copies were ever queued
};

State& state() {
  static State state;
  return state;
}

cudaError_t remember(cudaError_t status) {
  if (status != cudaSuccess) state().last_error = status;
  return status;
}

using Lock = std::lock_guard<std::recursive_mutex>;

// Sticky: after the first failure everything fails.
cudaError_t queued(cudaStream_t stream, std::function<void()> act, cudaMemcpyKind engine = cudaMemcpyDeviceToDevice) {
  const Lock lock(state().mutex);
  if (state().device.failure != cudaSuccess) return remember(state().device.failure);
  if (stream->captured) {
    stream->captured->actions.push_back(std::move(act));
    return cudaSuccess;
  }
  stream->queue.push_back({std::move(act), engine, ++state().copies});
  ++stream->queued;
  return cudaSuccess;
}

void run(cudaStream_t stream, std::uint64_t until) {
  while (stream->done < until) {
    const Action next = std::move(stream->queue.front());
    stream->queue.pop_front();
    ++stream->done;
    next.act();
  }
}

bool stands(cudaStream_t stream) {
  return state().device.hangs || (state().device.only_first_stream_runs && stream != state().streams.front());
}

bool is_anything_stuck() {
  return std::any_of(state().streams.begin(), state().streams.end(),
                     [](cudaStream_t stream) { return stands(stream) && !stream->queue.empty(); });
}

bool comes_after(const Action& action, const Action& earlier) {
  return action.engine != cudaMemcpyDeviceToDevice && action.engine == earlier.engine && earlier.copy < action.copy;
}

// An engine makes a copy only after all copies that it was asked for before.
bool waits_for_an_engine(cudaStream_t stream, std::uint64_t position) {
  const auto count = static_cast<std::ptrdiff_t>(position - stream->done);
  return std::any_of(stream->queue.begin(), stream->queue.begin() + count, [&](const Action& action) {
    return std::any_of(state().streams.begin(), state().streams.end(), [&](cudaStream_t other) {
      return stands(other) && std::any_of(other->queue.begin(), other->queue.end(),
                                          [&](const Action& earlier) { return comes_after(action, earlier); });
    });
  });
}

bool lies_in(const std::map<const std::byte*, std::size_t>& ranges, const void* address) {
  const auto* const byte = static_cast<const std::byte*>(address);
  auto after = ranges.upper_bound(byte);
  if (after == ranges.begin()) return false;
  --after;
  return byte < after->first + after->second;
}

// Called by functions that a graph cannot contain. Spoils the capture of this thread, if there is one.
cudaError_t spoil_captures() {
  for (const cudaStream_t stream : state().streams) {
    if (!stream->captured) continue;
    stream->captured->is_spoilt = true;
    return remember(cudaErrorStreamCaptureUnsupported);
  }
  return cudaSuccess;
}

std::map<const compute::CudaDigester*, Digest>& digests() {
  static std::map<const compute::CudaDigester*, Digest> digests;
  return digests;
}

}  // namespace

Device& device() {
  return state().device;
}

int looks_in_vain() {
  const Lock lock(state().mutex);
  return state().device.looks_in_vain;
}

void reset() {
  state().device = {};
  state().registered.clear();
  for (const cudaStream_t stream : state().streams) {
    stream->queue.clear();
    stream->done = stream->queued;
  }
  state().last_error = cudaSuccess;
}

}  // namespace holdfast::pretended_cuda

using holdfast::pretended_cuda::device;
using holdfast::pretended_cuda::is_anything_stuck;
using holdfast::pretended_cuda::lies_in;
using holdfast::pretended_cuda::Lock;
using holdfast::pretended_cuda::queued;
using holdfast::pretended_cuda::remember;
using holdfast::pretended_cuda::run;
using holdfast::pretended_cuda::spoil_captures;
using holdfast::pretended_cuda::stands;
using holdfast::pretended_cuda::state;
using holdfast::pretended_cuda::waits_for_an_engine;

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
  const Lock lock(state().mutex);
  *stream = new CUstream_st;
  state().streams.push_back(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Lock lock(state().mutex);
  std::erase(state().streams, stream);
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return queued(stream, [other = event->stream, position = event->position] { run(other, position); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Lock lock(state().mutex);
  if (const cudaError_t status = queued(stream, [] {}); status != cudaSuccess) return status;
  device().moved_awaited_event |= event->looks > 0 && event->stream->done < event->position;
  event->looks = 0;
  event->stream = stream;
  event->position = stream->queued;
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Lock lock(state().mutex);
  if (device().failure != cudaSuccess) return remember(device().failure);
  if (event->stream == nullptr || event->stream->done >= event->position) return cudaSuccess;
  ++event->looks;
  ++device().looks_in_vain;
  if (stands(event->stream) || waits_for_an_engine(event->stream, event->position)) return remember(cudaErrorNotReady);
  run(event->stream, event->position);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  const Lock lock(state().mutex);
  if (const cudaError_t status = spoil_captures(); status != cudaSuccess) return status;
  if (bytes > device().total_bytes - device().used_bytes) return remember(cudaErrorMemoryAllocation);
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(*memory, 0xFF, bytes);
  state().allocated[*memory] = bytes;
  device().used_bytes += bytes;
  return cudaSuccess;
}

cudaError_t cudaFree(void* memory) {
  const Lock lock(state().mutex);
  device().would_wait_for_ever |= is_anything_stuck();
  device().freed_too_early |= std::any_of(state().streams.begin(), state().streams.end(),
                                          [](cudaStream_t stream) { return !stream->queue.empty(); });
  device().used_bytes -= state().allocated[memory];
  state().allocated.erase(memory);
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const Lock lock(state().mutex);
  stream->captured = std::make_unique<CUgraph_st>();
  stream->captured->is_spoilt = device().refuses_to_capture;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Lock lock(state().mutex);
  const std::unique_ptr<CUgraph_st> captured = std::move(stream->captured);
  *graph = nullptr;
  if (captured->is_spoilt) return remember(cudaErrorStreamCaptureInvalidated);
  *graph = new CUgraph_st{captured->actions, false};
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* instance, cudaGraph_t graph, unsigned long long) {
  *instance = new CUgraphExec_st{std::make_shared<std::vector<std::function<void()>>>(graph->actions)};
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  const Lock lock(state().mutex);
  ++device().launched_graphs;
  return queued(stream, [actions = graph->actions] {
    for (const auto& action : *actions) action();
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  *free_bytes = device().total_bytes - device().used_bytes;
  *total_bytes = device().total_bytes;
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  const Lock lock(state().mutex);
  const void* const on_host = kind == cudaMemcpyHostToDevice ? from : to;
  if (kind != cudaMemcpyDeviceToDevice) {
    device().direct_copies += lies_in(state().registered, on_host);
    device().staged_copies += lies_in(state().pinned, on_host);
  } else {
    ++device().inner_copies;
  }
  return queued(
      stream, [=] { std::memcpy(to, from, bytes); }, kind);
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  return queued(stream, [=] { std::memset(memory, value, bytes); });
}

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  const Lock lock(state().mutex);
  *memory = std::malloc(bytes);
  state().pinned[static_cast<const std::byte*>(*memory)] = bytes;
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* memory) {
  const Lock lock(state().mutex);
  device().would_wait_for_ever |= is_anything_stuck();
  state().pinned.erase(static_cast<const std::byte*>(memory));
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned) {
  const Lock lock(state().mutex);
  if (device().refuses_to_register) return remember(cudaErrorMemoryAllocation);
  if (state().registered.contains(static_cast<const std::byte*>(memory))) {
    return remember(cudaErrorHostMemoryAlreadyRegistered);
  }
  state().registered[static_cast<const std::byte*>(memory)] = bytes;
  return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void** on_device, void* on_host, unsigned) {
  *on_device = on_host;
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* memory) {
  const Lock lock(state().mutex);
  device().would_wait_for_ever |= is_anything_stuck();
  state().registered.erase(static_cast<const std::byte*>(memory));
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  const Lock lock(state().mutex);
  const cudaError_t last = state().last_error;
  // An error that ends the use of the device stays.
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

void add_arrays(const float* summand, float* sum, std::size_t floats, cudaStream_t stream) {
  static_cast<void>(queued(stream, [=] {
    for (std::size_t i = 0; i < floats; ++i) sum[i] += summand[i];
  }));
}

void gather_host_rows(const float* from, std::size_t row_floats, const std::int64_t* rows, std::size_t row_count,
                      float* to, cudaStream_t stream) {
  gather_rows(from, row_floats, rows, row_count, to, stream);
}

void gather_rows(const float* from, std::size_t row_floats, const std::int64_t* rows, std::size_t row_count, float* to,
                 cudaStream_t stream) {
  static_cast<void>(queued(stream, [=] {
    for (std::size_t i = 0; i < row_count; ++i) {
      std::copy_n(from + static_cast<std::size_t>(rows[i]) * row_floats, row_floats, to + i * row_floats);
    }
  }));
}

void flag_not_finite(const float* values, std::size_t floats, std::uint32_t* flag, cudaStream_t stream) {
  static_cast<void>(queued(stream, [=] {
    for (std::size_t i = 0; i < floats; ++i) {
      if (!std::isfinite(values[i])) *flag = 1;
    }
  }));
}

void copy_small_to_host(const void* from, void* to, std::size_t bytes, cudaStream_t stream) {
  const Lock lock(state().mutex);
  // For other memory the device may have other addresses than the host.
  HOLDFAST_ASSERT(bytes <= kMostSmallBytes && lies_in(state().pinned, to));
  ++device().small_copies;
  static_cast<void>(queued(stream, [=] { std::memcpy(to, from, bytes); }));
}

CudaDigester::~CudaDigester() {
  const pretended_cuda::Lock lock(pretended_cuda::state().mutex);
  pretended_cuda::digests().erase(this);
}

void CudaDigester::queue(std::span<const std::span<const float>> arrays, cudaStream_t stream) {
  static_cast<void>(queued(stream, [this, arrays = std::vector(arrays.begin(), arrays.end())] {
    DigestBuilder builder;
    for (const std::span<const float> array : arrays) builder.update(std::as_bytes(array));
    pretended_cuda::digests()[this] = builder.finish();
  }));
}

Digest CudaDigester::result() const {
  const pretended_cuda::Lock lock(pretended_cuda::state().mutex);
  return pretended_cuda::digests().at(this);
}

}  // namespace holdfast::compute
