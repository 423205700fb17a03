#pragma once

// Holds the state of one moment: a second copy of arrays on the device. From there they travel to the host in a stream
// of their own, while training goes on. Training's stream only makes the copy within the device.
// See docs/decisions/device-copies.md.

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
  // `allocated` is what is allocated on the device; it changes only under the stream lock. `registered` is host
  // memory that is registered with the device. All three must outlive the holder, and the holder what it returns.
  ArrayHolder(CudaContext& context, const MemoryRanges& allocated, const MemoryRanges& registered)
      : context_(context), allocated_(allocated), registered_(registered) {}

  // See MemorySpace::hold(). Null if the device has no room for a second copy; then obstacle() says so.
  std::unique_ptr<HeldArrays> hold(std::span<const std::span<const float>> arrays);
  const std::string& obstacle() const { return obstacle_; }

  // Frees the second copy for good, because training needs the memory. Returns whether it did: it cannot if the copy is
  // in use. Called by the thread that allocates. Waits for what is queued on the device, no longer than its time limit.
  bool give_back_idle();

 private:
  class Held;

  // Arrays that are neighbours in memory, together with the padding between them. They are copied at once, because many
  // small copies take longer than one large one.
  struct Run {
    const std::byte* from = nullptr;
    std::size_t bytes = 0;
    std::size_t place = 0;  // offset in the second copy, in bytes
  };
  struct Layout {
    std::vector<Run> runs;
    std::vector<std::size_t> places;  // for each array its offset in the second copy, in bytes
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
  OwnedEvent taken_;     // in the context's stream, after the copy within the device
  OwnedEvent digested_;  // in stream_
  OwnedEvent copied_;    // in stream_
  std::unique_ptr<StagingRing> ring_;
  std::unique_ptr<CudaDigester> digester_;

  std::shared_ptr<std::byte[]> place_;
  std::size_t place_bytes_ = 0;
  std::string obstacle_;
  std::atomic<int> held_ = 0;  // how many objects of Held exist
  bool is_digest_queued_ = false;
  std::shared_future<void> copying_;  // the copy to the host that reads place_
};

}  // namespace holdfast::compute
