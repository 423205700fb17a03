#pragma once

// Holds arrays in a second place on the device, from where they go to the host in a stream of their own while training
// goes on: training's own stream does one copy within the device.

#include <cuda_runtime_api.h>
#include <atomic>

#include <cstddef>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compute/cuda/runtime/cuda_context.h"
#include "compute/cuda/runtime/cuda_digester.h"
#include "compute/cuda/runtime/memory_ranges.h"
#include "compute/cuda/runtime/staging_ring.h"
#include "holdfast/core/memory_space.h"

namespace holdfast::compute {

class ArrayHolder {
 public:
  // What is allocated on the device (it changes in turns of the context), and host memory that is registered with it.
  // All outlive the holder, and it what it has given out.
  ArrayHolder(CudaContext& context, const MemoryRanges& allocated, const MemoryRanges& registered)
      : context_(context), allocated_(allocated), registered_(registered) {}

  // See MemorySpace::hold(). Null where the device has no room for a second copy; obstacle() says so then.
  std::unique_ptr<HeldArrays> hold(std::span<const std::span<const float>> arrays);
  const std::string& obstacle() const { return obstacle_; }

  // Whether the second place was given back for good, since training needs the memory: only where it is not in use.
  // Called by the thread that allocates. Waits for what is queued on the device, for as long as its time limit.
  bool give_back_idle();

 private:
  class Held;

  // Neighbours in memory are copied in one go, what aligns them with them: many small copies would take longer than
  // one.
  struct Run {
    const std::byte* from = nullptr;
    std::size_t bytes = 0;
    std::size_t place = 0;  // in bytes, from the start
  };
  struct Layout {
    std::vector<Run> runs;
    std::vector<std::size_t> places;  // of each array
    std::size_t bytes = 0;
  };
  Layout lay_out(std::span<const std::span<const float>> arrays) const;
  bool can_join(const Run& run, std::span<const std::byte> next) const;

  bool make_room(std::size_t bytes);
  void begin_use();
  void await_last();
  void queue(const Layout& layout, std::span<const std::span<const float>> places);

  CudaContext& context_;
  const MemoryRanges& allocated_;
  const MemoryRanges& registered_;

  // Made by the first hold().
  OwnedStream stream_;
  OwnedEvent taken_;     // in the context's stream, behind the copy to the second place
  OwnedEvent digested_;  // in stream_
  OwnedEvent copied_;    // in stream_
  std::unique_ptr<StagingRing> ring_;
  std::unique_ptr<CudaDigester> digester_;

  std::shared_ptr<std::byte[]> place_;
  std::size_t place_bytes_ = 0;
  std::string obstacle_;
  std::atomic<int> held_ = 0;  // that live
  bool is_digest_queued_ = false;
  std::shared_future<void> copying_;  // what the place is in use for
};

}  // namespace holdfast::compute
