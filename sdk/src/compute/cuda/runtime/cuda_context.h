#pragma once

// What all back ends and arrays of one device share in a process: one stream, in whose order everything happens, the
// libraries' handles, and one workspace, which is free between two operations because the stream runs one at a time.
//
// Any thread may use it, in turns: what queues work, and what uses the workspace, holds a Turn meanwhile.

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "compute/cuda/runtime/cuda_error.h"
#include "compute/cuda/runtime/given_up.h"
#include "holdfast/base/deadline.h"

namespace holdfast::compute {

// Streams, events and handles give themselves back.
struct ReleaseCuda {
  void operator()(cudaStream_t stream) const { static_cast<void>(cudaStreamDestroy(stream)); }
  void operator()(cudaEvent_t event) const { static_cast<void>(cudaEventDestroy(event)); }
  void operator()(cublasLtHandle_t handle) const { static_cast<void>(cublasLtDestroy(handle)); }
  void operator()(cudnnHandle_t handle) const { static_cast<void>(cudnnDestroy(handle)); }
};
using OwnedStream = std::unique_ptr<CUstream_st, ReleaseCuda>;
using OwnedEvent = std::unique_ptr<CUevent_st, ReleaseCuda>;

// Without timing, for waits only. Of the calling thread's device.
OwnedEvent make_event();

class CudaContext {
 public:
  // Throws Error{unavailable} for a device that is not there or that Holdfast has no kernels for.
  explicit CudaContext(int device);
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  // The calling thread's turn: the device is its current one, and nobody else queues work. Short: nothing is waited for
  // in it. A thread may take one within another.
  class Turn {
   public:
    explicit Turn(CudaContext& context);

   private:
    std::unique_lock<std::recursive_mutex> lock_;
  };
  [[nodiscard]] Turn take_turn() { return Turn(*this); }

  std::string device() const { return "cuda:" + std::to_string(device_); }
  int device_index() const { return device_; }
  const std::string& device_model() const { return device_model_; }  // "NVIDIA H200"
  int multiprocessors() const { return multiprocessors_; }
  int compute_capability() const { return compute_capability_; }  // 90 for 9.0
  // What bits depend on: "cuBLASLt 13.0.0, cuDNN 9.19.0, NVIDIA H200 (compute capability 9.0, 132 multiprocessors)".
  std::string description() const;

  // Memory of the device, in bytes, aligned to 256 of them; its content is undefined. Throws Error{out_of_memory}
  // saying how much there is and how much is missing. Giving it back waits for what was queued before, no longer than
  // the time limit says, and so does an allocation for which somebody gives memory back (call_when_full()).
  std::shared_ptr<std::byte[]> allocate(std::size_t bytes);
  // `give_back` says whether it freed memory that nobody uses; the allocation is then tried once more. It is called
  // outside of a turn, unless the caller of allocate() has one. It must live as long as anybody allocates.
  void call_when_full(std::function<bool()> give_back) { give_back_ = std::move(give_back); }

  // Until everything is done that was queued before, as wait_for() does, within the time limit.
  void wait();
  // Returns once all work before the event's last record is done. Throws Error{deadline_exceeded} naming `what` at the
  // deadline, behind which the device is given up: Error{device_failed}, at once, whoever waits then. What went wrong
  // on the device is thrown as check_cuda() does.
  void wait_for(cudaEvent_t event, Deadline deadline, const std::string& what);
  void set_time_limit(std::chrono::milliseconds limit);
  Deadline deadline();
  const GivenUp& given_up() const { return given_up_; }

  // In a turn only:

  cudaStream_t stream() const { return stream_.get(); }
  cublasLtHandle_t cublas() const { return cublas_.get(); }
  // Made at the first call, which takes a while and memory: models without convolutions do without.
  cudnnHandle_t cudnn();

  // Called when an operation is made, so that running it allocates nothing. Blocks that became too small are kept:
  // captured graphs may still name them.
  void reserve_workspace(std::size_t bytes);
  std::byte* workspace() const { return workspace_blocks_.empty() ? nullptr : workspace_blocks_.back().get(); }
  std::size_t workspace_bytes() const { return workspace_bytes_; }

 private:
  std::byte* try_allocate(std::size_t bytes) const;
  [[noreturn]] void throw_out_of_memory(std::size_t bytes) const;
  OwnedEvent take_event();
  void release(std::byte* memory) noexcept;

  const int device_;
  const GivenUp given_up_;
  std::function<bool()> give_back_;
  std::string device_model_;
  int multiprocessors_ = 0;
  int compute_capability_ = 0;

  std::recursive_mutex mutex_;  // guards all that follows
  std::chrono::milliseconds time_limit_ = std::chrono::seconds(60);
  OwnedStream stream_;
  // For waits, one event each: an event that is recorded again moves on for those that wait for it.
  std::vector<OwnedEvent> idle_events_;
  std::unique_ptr<cublasLtContext, ReleaseCuda> cublas_;
  std::unique_ptr<cudnnContext, ReleaseCuda> cudnn_;
  std::size_t workspace_bytes_ = 0;
  // Given back first, in the order of the stream.
  std::vector<std::shared_ptr<std::byte[]>> workspace_blocks_;
};

}  // namespace holdfast::compute
