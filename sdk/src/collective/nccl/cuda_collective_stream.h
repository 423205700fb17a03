#pragma once

// The stream of collectives on a CUDA device. It has the highest priority: work that peers wait for should not queue
// up after work that only computes.

#include <cuda_runtime_api.h>

#include <memory>
#include <string>
#include <vector>

#include "collective/nccl/collective_stream.h"
#include "compute/cuda/runtime/lost_device.h"

namespace holdfast {

class CudaCollectiveStream final : public CollectiveStream {
 public:
  // `training` is the stream that training computes in; it must outlive this object. `lost_device` is the flag of the
  // device.
  CudaCollectiveStream(int device, cudaStream_t training, compute::LostDeviceFlag lost_device = {});
  ~CudaCollectiveStream() override;

  CudaCollectiveStream(const CudaCollectiveStream&) = delete;
  CudaCollectiveStream& operator=(const CudaCollectiveStream&) = delete;

  std::string device() const override { return "cuda:" + std::to_string(device_); }
  std::string identity() const override { return identity_; }
  void* handle() override { return stream_; }
  void make_current() override;
  void follow_training() override;
  void mark_training(std::size_t mark) override;
  void follow_training(std::size_t mark) override;
  bool has_training_passed() override;
  void begin_sums() override;
  void add_in_order(const OrderedSum& sum) override;
  void mark() override;
  bool has_passed_mark() override;
  bool were_finite() const override { return *found_on_host_ == 0; }
  void mark_device_lost() noexcept override { lost_device_.set(); }

 private:
  void create();
  void follow(cudaEvent_t training, const char* what);
  bool has_passed(cudaEvent_t event, const char* what);
  void destroy() noexcept;

  const int device_;
  const cudaStream_t training_;
  const compute::LostDeviceFlag lost_device_;
  std::string identity_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t training_done_ = nullptr;
  std::vector<cudaEvent_t> training_marks_;
  cudaEvent_t followed_ = nullptr;  // the one of these that the stream follows last
  cudaEvent_t mark_ = nullptr;
  unsigned* found_ = nullptr;          // on the device: not 0 if a sum is not finite
  unsigned* found_on_host_ = nullptr;  // in pinned memory: its value at the mark
  int most_blocks_ = 1;
};

}  // namespace holdfast
