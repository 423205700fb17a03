// Every wait for the device polls an event until a deadline. CUDA's own waits have no deadline, so a kernel that hangs
// would keep the process for good. After a wait in vain the device is lost: nothing is waited for or freed any more,
// since cudaFree() would wait for the same kernel. The end of the process frees everything.
// See docs/decisions/failing-devices.md.

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

static void require_not_lost(const LostDeviceFlag& lost_device, const std::string& device, const std::string& what) {
  if (!lost_device.is_set()) return;
  throw Error(
      ErrorCode::device_failed,
      fmt::format("{0} is lost, because an earlier wait for it reached its deadline, so {1} is not waited for; this "
                  "process must be replaced",
                  device, what));
}

static void poll(cudaEvent_t event, Deadline deadline, const std::string& what, const std::function<void()>& check) {
  // While the thread that waits for a step's sums sleeps, the device is idle, and Linux makes a sleep of 50 us one of
  // 115. So it polls without a pause for 20 ms first, measured by time, because a poll may take any time.
  constexpr std::chrono::milliseconds kSpinsFor{20};
  constexpr std::chrono::microseconds kNap{50};
  const Deadline nap_from = Deadline::after(kSpinsFor);
  for (;;) {
    check();
    // Asked before the query: a thread that was suspended for long must look once more before it gives up.
    const bool is_last = deadline.has_passed();
    const cudaError_t status = cudaEventQuery(event);
    if (status == cudaSuccess) return;
    if (status != cudaErrorNotReady) check_cuda(status, what);
    // The runtime stores "not ready" as its last error, which the check of the next launch would find.
    static_cast<void>(cudaGetLastError());
    if (is_last) {
      throw Error(
          ErrorCode::deadline_exceeded,
          fmt::format(
              "{} did not end within its time limit: a kernel hangs, or other programs keep the device busy; this "
              "process must be replaced, or get a longer time limit",
              what));
    }
    if (nap_from.has_passed()) std::this_thread::sleep_for(kNap);
  }
}

static cudaDeviceProp properties_of(int device) {
  int count = 0;
  check_cuda(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  if (device >= count) {
    throw Error(ErrorCode::unavailable, fmt::format("there is no cuda:{}; this machine has {} CUDA {}, counted from 0",
                                                    device, count, count == 1 ? "device" : "devices"));
  }
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  // Products at bf16 and tf32 take tensor cores, which know these types from this generation on.
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
  check_cuda(cudaSetDevice(device), fmt::format("cudaSetDevice to {}", this->device()));

  cudaStream_t stream = nullptr;
  // Not ordered with the default stream, which other libraries of the process may use.
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  stream_.reset(stream);
  cublasLtHandle_t cublas = nullptr;
  check_cublas(cublasLtCreate(&cublas), fmt::format("cublasLtCreate on {}", this->device()));
  cublas_.reset(cublas);
}

CudaContext::~CudaContext() {
  if (!lost_device_.is_set()) return;
  // Destroying a handle waits for the device without a deadline.
  static_cast<void>(cublas_.release());
  static_cast<void>(cudnn_.release());
}

CudaContext::StreamLock::StreamLock(CudaContext& context) : lock_(context.mutex_) {
  check_cuda(cudaSetDevice(context.device_), "cudaSetDevice");
}

// The libraries encode 9.19.0 as 91900.
static std::string version_text(std::size_t version) {
  return fmt::format("{}.{}.{}", version / 10'000, version % 10'000 / 100, version % 100);
}

std::string CudaContext::description() const {
  return fmt::format("cuBLASLt {}, cuDNN {}, {} (compute capability {}.{}, {} multiprocessors)",
                     version_text(cublasLtGetVersion()), version_text(cudnnGetVersion()), device_model_,
                     compute_capability_ / 10, compute_capability_ % 10, multiprocessors_);
}

// Null if the device has no room.
std::byte* CudaContext::try_allocate(std::size_t bytes) const {
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, std::max<std::size_t>(bytes, 1));
  // The device goes on after this failure, and the caller may have memory to give back.
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

// cudaFree() waits for the device without a deadline, so a wait with a deadline comes first. If that fails, the process
// is about to be replaced, and its memory is freed with it.
void CudaContext::release(std::byte* memory) noexcept {
  if (lost_device_.is_set()) return;
  try {
    wait();
    const StreamLock lock = lock_stream();
    static_cast<void>(cudaFree(memory));
  } catch (const Error&) {
  }
}

std::shared_ptr<std::byte[]> CudaContext::allocate(std::size_t bytes) {
  const auto owned = [this](std::byte* memory) {
    return std::shared_ptr<std::byte[]>(memory, [this](std::byte* given_back) { release(given_back); });
  };
  {
    const StreamLock lock = lock_stream();
    if (std::byte* const memory = try_allocate(bytes)) return owned(memory);
  }
  // Without the lock: freeing memory waits for the device, and other threads may queue work meanwhile.
  const bool is_more_free = give_back_ && give_back_();
  const StreamLock lock = lock_stream();
  if (std::byte* const memory = is_more_free ? try_allocate(bytes) : nullptr) return owned(memory);
  throw_out_of_memory(bytes);
}

OwnedEvent CudaContext::take_event() {
  // Events are used again: there is a wait in each step.
  if (idle_events_.empty()) return make_event();
  OwnedEvent event = std::move(idle_events_.back());
  idle_events_.pop_back();
  return event;
}

void CudaContext::wait() {
  OwnedEvent done;
  Deadline limit = Deadline::after({});
  {
    const StreamLock lock = lock_stream();
    done = take_event();
    check_cuda(cudaEventRecord(done.get(), stream_.get()), "cudaEventRecord on " + device());
    limit = deadline();
  }
  wait_for(done.get(), limit, "the work of " + device());
  const StreamLock lock = lock_stream();
  idle_events_.push_back(std::move(done));
}

void CudaContext::wait_for(cudaEvent_t event, Deadline deadline, const std::string& what) {
  try {
    // Another thread may find the device lost meanwhile.
    poll(event, deadline, what, [&] { require_not_lost(lost_device_, device(), what); });
  } catch (const Error& error) {
    // From here on no other wait begins, and nothing of the device is freed.
    if (error.code() == ErrorCode::deadline_exceeded) lost_device_.set();
    throw;
  }
}

void CudaContext::set_time_limit(std::chrono::milliseconds limit) {
  const StreamLock lock = lock_stream();
  time_limit_ = limit;
}

Deadline CudaContext::deadline() {
  const StreamLock lock = lock_stream();
  return Deadline::after(time_limit_);
}

cudnnHandle_t CudaContext::cudnn() {
  // Made when the first convolution asks: a handle takes time and memory that other models need not spend.
  if (cudnn_ == nullptr) {
    cudnnHandle_t handle = nullptr;
    check_cudnn(cudnnCreate(&handle), fmt::format("cudnnCreate on {}", device()));
    cudnn_.reset(handle);
    check_cudnn(cudnnSetStream(handle, stream_.get()), "cudnnSetStream");
  }
  return cudnn_.get();
}

void CudaContext::reserve_workspace(std::size_t bytes) {
  if (bytes <= workspace_bytes_) return;
  // At least twice the last block, so that all smaller ones, which are kept, add up to no more than the largest. If
  // that does not fit, only what is needed.
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
