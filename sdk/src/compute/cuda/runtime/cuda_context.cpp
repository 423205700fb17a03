#include "compute/cuda/runtime/cuda_context.h"

#include <fmt/format.h>
#include <algorithm>
#include <functional>
#include <thread>

#include "compute/cuda/runtime/device_sentences.h"

namespace holdfast::compute {

OwnedEvent make_event() {
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  return OwnedEvent(event);
}

static void require_not_given_up(const GivenUp& given_up, const std::string& device, const std::string& what) {
  if (!given_up.is_set()) return;
  throw Error(ErrorCode::device_failed,
              fmt::format("{} was given up, since something hangs on it, so that {} is not waited "
                          "for; this process must be replaced",
                          device, what));
}

static void poll(cudaEvent_t event, Deadline deadline, const std::string& what, const std::function<void()>& check) {
  // The device has nothing to do while somebody sleeps who waits for a step's sums: Linux makes a nap of 50 us one of
  // 115. By time, since nothing says how long a look at an event takes.
  constexpr std::chrono::milliseconds kSpinsFor{20};
  constexpr std::chrono::microseconds kNap{50};
  const Deadline nap_from = Deadline::after(kSpinsFor);
  for (;;) {
    check();
    const bool is_last = deadline.has_passed();
    const cudaError_t status = cudaEventQuery(event);
    if (status == cudaSuccess) return;
    if (status != cudaErrorNotReady) check_cuda(status, what);
    // The runtime remembers "not ready" as if it were a failure, for the next check of a kernel's start to find.
    static_cast<void>(cudaGetLastError());
    if (is_last) {
      throw Error(
          ErrorCode::deadline_exceeded,
          fmt::format("{} did not end within its time limit: a kernel hangs, or the device is shared with others "
                      "that keep it busy; this process must be replaced, or given a longer time limit",
                      what));
    }
    if (nap_from.has_passed()) std::this_thread::sleep_for(kNap);
  }
}

static cudaDeviceProp properties_of(int device) {
  int count = 0;
  check_cuda(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  if (device >= count) {
    throw Error(ErrorCode::unavailable, fmt::format("there is no cuda:{}, but {} CUDA {}, counted from 0", device,
                                                    count, count == 1 ? "device" : "devices"));
  }
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  constexpr int kOldestMajor = 8;
  if (properties.major < kOldestMajor) {
    throw Error(ErrorCode::unavailable,
                fmt::format("cuda:{} ({}) has compute capability {}.{}; Holdfast needs 8.0 or later", device,
                            properties.name, properties.major, properties.minor));
  }
  return properties;
}

CudaContext::CudaContext(int device) : device_(device) {
  const cudaDeviceProp properties = properties_of(device);
  device_model_ = properties.name;
  multiprocessors_ = properties.multiProcessorCount;
  compute_capability_ = 10 * properties.major + properties.minor;
  check_cuda(cudaSetDevice(device), "cudaSetDevice to " + this->device());

  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  stream_.reset(stream);
  cublasLtHandle_t cublas = nullptr;
  check_cublas(cublasLtCreate(&cublas), "cublasLtCreate on " + this->device());
  cublas_.reset(cublas);
}

CudaContext::~CudaContext() {
  if (!given_up_.is_set()) return;
  static_cast<void>(cublas_.release());
  static_cast<void>(cudnn_.release());
}

CudaContext::Turn::Turn(CudaContext& context) : lock_(context.mutex_) {
  check_cuda(cudaSetDevice(context.device_), "cudaSetDevice");
}

// Of a version as the libraries count: 91900 is 9.19.0.
static std::string version_text(std::size_t version) {
  return fmt::format("{}.{}.{}", version / 10'000, version % 10'000 / 100, version % 100);
}

std::string CudaContext::description() const {
  return fmt::format("cuBLASLt {}, cuDNN {}, {} (compute capability {}.{}, {} multiprocessors)",
                     version_text(cublasLtGetVersion()), version_text(cudnnGetVersion()), device_model_,
                     compute_capability_ / 10, compute_capability_ % 10, multiprocessors_);
}

// Null where the device has no room.
std::byte* CudaContext::try_allocate(std::size_t bytes) const {
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, std::max<std::size_t>(bytes, 1));
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    return nullptr;
  }
  check_cuda(status, fmt::format("cudaMalloc of {} on {}", in_bytes(bytes), device()));
  return static_cast<std::byte*>(memory);
}

void CudaContext::throw_out_of_memory(std::size_t bytes) const {
  MemoryShortage shortage = {.device = fmt::format("{} ({})", device(), device_model_), .asked_bytes = bytes};
  check_cuda(cudaMemGetInfo(&shortage.free_bytes, &shortage.total_bytes), "cudaMemGetInfo");
  throw Error(ErrorCode::out_of_memory, describe(shortage));
}

// cudaFree() waits for the device, however long that takes: the bounded wait comes first. Where it fails, the process
// is about to be replaced, and its memory with it.
void CudaContext::release(std::byte* memory) noexcept {
  if (given_up_.is_set()) return;
  try {
    wait();
    const Turn turn = take_turn();
    static_cast<void>(cudaFree(memory));
  } catch (const Error&) {
  }
}

std::shared_ptr<std::byte[]> CudaContext::allocate(std::size_t bytes) {
  const auto owned = [this](std::byte* memory) {
    return std::shared_ptr<std::byte[]>(memory, [this](std::byte* given_back) { release(given_back); });
  };
  {
    const Turn turn = take_turn();
    if (std::byte* const memory = try_allocate(bytes)) return owned(memory);
  }
  // Not in a turn: giving memory back waits for the device, and other threads have work for it meanwhile.
  const bool is_more_free = give_back_ && give_back_();
  const Turn turn = take_turn();
  if (std::byte* const memory = is_more_free ? try_allocate(bytes) : nullptr) return owned(memory);
  throw_out_of_memory(bytes);
}

OwnedEvent CudaContext::take_event() {
  if (idle_events_.empty()) return make_event();
  OwnedEvent event = std::move(idle_events_.back());
  idle_events_.pop_back();
  return event;
}

void CudaContext::wait() {
  OwnedEvent done;
  Deadline limit = Deadline::after({});
  {
    const Turn turn = take_turn();
    done = take_event();
    check_cuda(cudaEventRecord(done.get(), stream_.get()), "cudaEventRecord on " + device());
    limit = deadline();
  }
  wait_for(done.get(), limit, "the work of " + device());
  const Turn turn = take_turn();
  idle_events_.push_back(std::move(done));
}

void CudaContext::wait_for(cudaEvent_t event, Deadline deadline, const std::string& what) {
  try {
    // Another thread may give it up meanwhile.
    poll(event, deadline, what, [&] { require_not_given_up(given_up_, device(), what); });
  } catch (const Error& error) {
    if (error.code() == ErrorCode::deadline_exceeded) given_up_.set();
    throw;
  }
}

void CudaContext::set_time_limit(std::chrono::milliseconds limit) {
  const Turn turn = take_turn();
  time_limit_ = limit;
}

Deadline CudaContext::deadline() {
  const Turn turn = take_turn();
  return Deadline::after(time_limit_);
}

cudnnHandle_t CudaContext::cudnn() {
  if (cudnn_ == nullptr) {
    cudnnHandle_t handle = nullptr;
    check_cudnn(cudnnCreate(&handle), "cudnnCreate on " + device());
    cudnn_.reset(handle);
    check_cudnn(cudnnSetStream(handle, stream_.get()), "cudnnSetStream");
  }
  return cudnn_.get();
}

void CudaContext::reserve_workspace(std::size_t bytes) {
  if (bytes <= workspace_bytes_) return;
  // Twice the last one at least: what is kept of smaller ones then adds up to no more than the largest. Where there is
  // no room for that, what is needed.
  std::size_t grown = std::max(bytes, 2 * workspace_bytes_);
  try {
    workspace_blocks_.push_back(allocate(grown));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory || grown == bytes) throw;
    grown = bytes;
    workspace_blocks_.push_back(allocate(grown));
  }
  workspace_bytes_ = grown;
}

}  // namespace holdfast::compute
