#pragma once

// Rows of a registered host array on their way to the device in a stream of their own, so that the link is busy while
// the device computes. Two places take turns: one is filled while the other is read.

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
  // `from` is whole rows, and registered with the context's device for as long as this lives.
  CudaRowFeed(CudaContext& context, std::span<const float> from, std::size_t row_floats);
  // Waits for what is under way, no longer than the context's time limit says.
  ~CudaRowFeed() override;

  void begin(std::span<const std::int64_t> rows) override;
  std::span<const float> take() override;

 private:
  // So many pieces are copied one by one; of more, the device reads each row through the link itself, which is quicker
  // than starting a copy for each.
  static constexpr std::size_t kMostRuns = 64;

  struct Place {
    std::shared_ptr<std::byte[]> memory;
    std::size_t room = 0;    // in floats
    std::size_t floats = 0;  // of what is in it
    OwnedEvent filled;       // in stream_
    std::shared_ptr<std::byte[]> row_numbers;
    std::size_t row_numbers_bytes = 0;

    float* data() const { return reinterpret_cast<float*>(memory.get()); }
  };

  void make_room(Place& place, std::size_t floats);
  void copy_runs(std::span<const std::int64_t> rows, float* to);
  void gather(std::span<const std::int64_t> rows, Place& place);

  CudaContext& context_;
  const std::span<const float> from_;
  const std::size_t row_floats_;
  const float* from_on_device_ = nullptr;  // where the device sees from_; null: it does not

  OwnedStream stream_;
  OwnedEvent read_;  // in the context's stream, behind what read the place that is filled next
  std::unique_ptr<StagingRing> ring_;
  std::array<Place, 2> places_;
  std::size_t begun_ = 0;
  std::size_t taken_ = 0;
};

}  // namespace holdfast::compute
