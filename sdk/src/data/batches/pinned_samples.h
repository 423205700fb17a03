#pragma once

// Samples in pinned memory of the host. From there a batch travels to the device while the one before
// is computed. They are the samples of a source, or batches that were loaded ahead. For one thread at a
// time, like a memory space.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/batches/staged_batches.h"
#include "holdfast/core/memory_space.h"
#include "holdfast/data/dataset.h"

namespace holdfast {

// The feeds of a data set's batches, which are taken in the order of the data set.
struct SampleFeeds {
  std::shared_ptr<void> pinned{};       // keeps the memory pinned while the feeds are used
  std::unique_ptr<RowFeed> features{};  // both are null if a plain copy is as good
  std::unique_ptr<RowFeed> targets{};

  bool are_there() const { return features != nullptr && targets != nullptr; }
};

// Pins the rows and returns feeds of them; none if the rows take too much of the memory of the host.
// The rows and the memory space must outlive the feeds.
SampleFeeds feeds_of_rows(const Dataset& dataset, const HostRows& rows, MemorySpace& memory);

// Memory that is pinned as long as this object lives.
class PinnedMemory {
 public:
  PinnedMemory(std::span<std::byte> bytes, MemorySpace& memory);
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

 private:
  const std::span<std::byte> bytes_;
  MemorySpace& memory_;
};

// The pinned arrays of a source.
class PinnedSamples {
 public:
  // Pins the arrays of the source of `dataset`, which must have one; sources that are too large stay
  // unpinned. The memory space must outlive this object.
  PinnedSamples(const Dataset& dataset, MemorySpace& memory);

  // Whether the samples of the data set come from the same source.
  bool are_source_of(const Dataset& dataset) const;
  // Feeds for a data set with that source; this object must outlive them. None if nothing is pinned.
  SampleFeeds make_feeds(const Dataset& dataset) const;

 private:
  const std::shared_ptr<const Stage> last_stage_;  // keeps the source alive
  MemorySpace& memory_;
  std::vector<std::unique_ptr<PinnedMemory>> pinned_;
};

}  // namespace holdfast
