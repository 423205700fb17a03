#pragma once

// The memory space of a CUDA device: its arrays, in the order of the context's stream. Copies between host and device
// go directly from or to host memory that is pinned, and else through a ring of pinned buffers.

#include <memory>
#include <optional>

#include "compute/cuda/runtime/array_holder.h"
#include "compute/cuda/runtime/cuda_context.h"
#include "compute/cuda/runtime/cuda_digester.h"
#include "compute/cuda/runtime/memory_ranges.h"
#include "compute/cuda/runtime/staging_ring.h"
#include "holdfast/core/memory_space.h"

namespace holdfast::compute {

class CudaMemorySpace final : public MemorySpace {
 public:
  // The memory space of `device` in this process. It is made when it is first needed, and lives as long as someone owns
  // it. Any thread. Throws what CudaContext throws.
  static std::shared_ptr<CudaMemorySpace> of_device(int device);

  explicit CudaMemorySpace(int device) : context_(device), staging_(context_, context_.stream()) {
    context_.call_when_full([this] { return holder_.give_back_idle(); });
  }

  CudaContext& context() { return context_; }

  std::string device() const override { return context_.device(); }
  std::shared_ptr<float[]> allocate(std::size_t floats) override;
  void copy_to_host(std::span<const float> from, std::span<float> to) override;
  void copy_from_host(std::span<const float> from, std::span<float> to) override;
  void copy(std::span<const float> from, std::span<float> to) override;
  void gather(std::span<const float> from, std::span<const std::int64_t> rows, std::span<float> to) override;
  void add(std::span<const float> summand, std::span<float> sum) override;
  bool is_finite(std::span<const float> array) override;
  void fill_zero(std::span<float> array) override;
  Digest digest_of(std::span<const std::span<const float>> arrays) override;
  std::unique_ptr<HeldArrays> hold(std::span<const std::span<const float>> arrays) override;
  std::unique_ptr<RowFeed> feed(std::span<const float> from, std::size_t row_floats) override;
  void wait() override { context_.wait(); }
  void set_time_limit(std::chrono::milliseconds limit) override { context_.set_time_limit(limit); }
  void pin(std::span<std::byte> memory) override;
  void unpin(std::span<std::byte> memory) override;

 private:
  void forget(std::span<const std::byte> memory) noexcept;
  void copy_and_wait(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);

  CudaContext context_;
  StagingRing staging_;
  MemoryRanges allocated_;  // guarded by the stream lock
  MemoryRanges pinned_;
  ArrayHolder holder_{context_, allocated_, pinned_};
  std::optional<CudaDigester> digester_;      // made by the first digest
  std::shared_ptr<std::byte[]> row_numbers_;  // of gather(); as many rows as it was ever asked for
  std::size_t row_numbers_bytes_ = 0;
  std::shared_ptr<float[]> flag_;  // one word, made by the first is_finite()
};

}  // namespace holdfast::compute
