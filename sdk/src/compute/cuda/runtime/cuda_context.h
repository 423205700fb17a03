#pragma once

// What all back ends and arrays of one device share in a process: one stream, in whose order everything happens; the
// libraries' handles; and one workspace. The workspace is free between two operations, because the stream runs one
// operation at a time.
//
// Any thread may use it. A thread holds the stream lock while it queues work or uses the workspace. A wait does not
// hold the lock, so other threads can queue work meanwhile. See docs/decisions/devices.md.

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "compute/cuda/runtime/cuda_error.h"
#include "compute/cuda/runtime/lost_device.h"
#include "holdfast/base/deadline.h"

namespace holdfast::compute {

// Streams, events and handles destroy themselves.
struct ReleaseCuda {
  void operator()(cudaStream_t stream) const { static_cast<void>(cudaStreamDestroy(stream)); }
  void operator()(cudaEvent_t event) const { static_cast<void>(cudaEventDestroy(event)); }
  void operator()(cublasLtHandle_t handle) const { static_cast<void>(cublasLtDestroy(handle)); }
  void operator()(cudnnHandle_t handle) const { static_cast<void>(cudnnDestroy(handle)); }
};
using OwnedStream = std::unique_ptr<CUstream_st, ReleaseCuda>;
using OwnedEvent = std::unique_ptr<CUevent_st, ReleaseCuda>;

// An event of the calling thread's current device. It has no timing and is for waits only.
OwnedEvent make_event();

class CudaContext {
 public:
  // Throws Error{unavailable} if the device does not exist or Holdfast has no kernels for it.
  explicit CudaContext(int device);
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  // Holds the stream lock: meanwhile the device is the thread's current one, and no other thread queues work. Hold
  // it briefly and never wait for the device in it. A thread may hold it more than once.
  class StreamLock {
   public:
    explicit StreamLock(CudaContext& context);

   private:
    std::unique_lock<std::recursive_mutex> lock_;
  };
  [[nodiscard]] StreamLock lock_stream() { return StreamLock(*this); }

  std::string device() const { return "cuda:" + std::to_string(device_); }
  int device_index() const { return device_; }
  const std::string& device_model() const { return device_model_; }  // "NVIDIA H200"
  int multiprocessors() const { return multiprocessors_; }
  int compute_capability() const { return compute_capability_; }  // 90 for 9.0
  // What the bits depend on: "cuBLASLt 13.0.0, cuDNN 9.19.0, NVIDIA H200 (compute capability 9.0, 132
  // multiprocessors)".
  std::string description() const;

  // Device memory, aligned to 256 bytes; its content is undefined. Throws Error{out_of_memory}, which says how much is
  // free and how much is missing. Freeing it waits for all work that was queued before, no longer than the time limit.
  // So does an allocation that needs call_when_full()'s memory.
  std::shared_ptr<std::byte[]> allocate(std::size_t bytes);
  // Registers a function that frees memory which is not in use, and returns whether it did. An allocation that does not
  // fit calls it and then tries once more. It is called without the lock, unless the caller of allocate() holds it. It
  // must stay valid as long as memory is allocated.
  void call_when_full(std::function<bool()> give_back) { give_back_ = std::move(give_back); }

  // Returns when all work that was queued before is done. Waits as wait_for() does, within the time limit.
  void wait();
  // Returns when all work before the event's last record is done. At the deadline it declares the device lost and
  // throws Error{deadline_exceeded}, which names `what`. From then on all waits throw Error{device_failed} at once.
  // Errors of the device are thrown as by check_cuda().
  void wait_for(cudaEvent_t event, Deadline deadline, const std::string& what);
  void set_time_limit(std::chrono::milliseconds limit);
  Deadline deadline();
  const LostDeviceFlag& lost_device() const { return lost_device_; }

  // What follows is only for a thread that holds the lock.

  cudaStream_t stream() const { return stream_.get(); }
  cublasLtHandle_t cublas() const { return cublas_.get(); }
  // Made by the first call, because it takes time and memory and models without convolutions do not need it.
  cudnnHandle_t cudnn();

  // Called when an operation is made, so that running it allocates nothing. Blocks that became too small are kept,
  // because recorded graphs may still use them.
  void reserve_workspace(std::size_t bytes);
  std::byte* workspace() const { return workspace_blocks_.empty() ? nullptr : workspace_blocks_.back().get(); }
  std::size_t workspace_bytes() const { return workspace_bytes_; }

 private:
  std::byte* try_allocate(std::size_t bytes) const;
  [[noreturn]] void throw_out_of_memory(std::size_t bytes) const;
  OwnedEvent take_event();
  void release(std::byte* memory) noexcept;

  const int device_;
  const LostDeviceFlag lost_device_;
  std::function<bool()> give_back_;
  std::string device_model_;
  int multiprocessors_ = 0;
  int compute_capability_ = 0;

  std::recursive_mutex mutex_;  // guards all that follows
  std::chrono::milliseconds time_limit_ = std::chrono::seconds(60);
  OwnedStream stream_;
  // Events for waits, one for each wait at a time. If two waits shared one, recording it again would prolong the first.
  std::vector<OwnedEvent> idle_events_;
  std::unique_ptr<cublasLtContext, ReleaseCuda> cublas_;
  std::unique_ptr<cudnnContext, ReleaseCuda> cudnn_;
  std::size_t workspace_bytes_ = 0;
  // Destroyed first, while the stream still exists.
  std::vector<std::shared_ptr<std::byte[]>> workspace_blocks_;
};

}  // namespace holdfast::compute
