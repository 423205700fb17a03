#pragma once

// Sends rows of a pinned host array to the device in a stream of its own, so that samples travel while the device
// computes. Two buffers alternate: one is filled while the other is read. Events decide which one is free, so nothing
// waits. See docs/decisions/loading.md.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "compute/cuda/runtime/cuda_context.h"
#include "compute/cuda/runtime/staging_ring.h"
#include "holdfast/core/memory_space.h"

namespace holdfast::compute {

class CudaRowFeed final : public RowFeed {
 public:
  // `from` consists of whole rows, and must stay pinned for the context's device as long as this object lives.
  CudaRowFeed(CudaContext& context, std::span<const float> from, std::size_t row_floats);
  // Waits for copies that are under way, no longer than the context's time limit.
  ~CudaRowFeed() override;

  void begin(std::span<const std::int64_t> rows) override;
  std::span<const float> take() override;

 private:
  // Up to so many runs of consecutive rows are copied one by one. If there are more, a kernel reads the rows through
  // the link, which is faster than starting a copy for each run.
  static constexpr std::size_t kMostRuns = 64;

  struct Buffer {
    std::shared_ptr<std::byte[]> memory;
    std::size_t room = 0;    // in floats
    std::size_t floats = 0;  // how many floats it holds
    OwnedEvent filled;       // in stream_
    std::shared_ptr<std::byte[]> row_numbers;
    std::size_t row_numbers_bytes = 0;

    float* data() const { return reinterpret_cast<float*>(memory.get()); }
  };

  void make_room(Buffer& buffer, std::size_t floats);
  void copy_runs(std::span<const std::int64_t> rows, float* to);
  void gather(std::span<const std::int64_t> rows, Buffer& buffer);

  CudaContext& context_;
  const std::span<const float> from_;
  const std::size_t row_floats_;
  const float* from_on_device_ = nullptr;  // the device's address of from_; null if it has none

  OwnedStream stream_;
  OwnedEvent read_;  // in the context's stream, after the work that read the buffer that is filled next
  std::unique_ptr<StagingRing> ring_;
  std::array<Buffer, 2> buffers_;
  std::size_t begun_ = 0;
  std::size_t taken_ = 0;
};

}  // namespace holdfast::compute
