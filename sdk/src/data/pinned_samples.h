#pragma once

// Samples in pinned memory of the host, from where a batch is on its way to the device while the one before is
// computed: those of a source, or batches that were loaded ahead. For one thread at a time, as the memory space is.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/staged_batches.h"
#include "holdfast/core/memory_space.h"
#include "holdfast/data/dataset.h"

namespace holdfast {

// For batches of a data set, in the order of its own.
struct SampleFeeds {
  std::shared_ptr<void> pinned{};       // what must stay so as long as they feed
  std::unique_ptr<RowFeed> features{};  // null where there is nothing better than a copy, as are the targets
  std::unique_ptr<RowFeed> targets{};

  bool are_there() const { return features != nullptr && targets != nullptr; }
};

// Pins the rows, which outlive the feeds, as the memory space does. Of more than the host has room for there are none.
SampleFeeds feeds_of_rows(const Dataset& dataset, const HostRows& rows, MemorySpace& memory);

// Pinned as long as this lives.
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

class PinnedSamples {
 public:
  // Of a data set that has a source; the memory space outlives this object. Larger sources than the host has room for
  // are not pinned.
  PinnedSamples(const Dataset& dataset, MemorySpace& memory);

  // Whether the data set's samples come from the same source.
  bool are_source_of(const Dataset& dataset) const;
  // For a data set with that source. This object outlives them.
  SampleFeeds make_feeds(const Dataset& dataset) const;

 private:
  const std::shared_ptr<const Stage> last_stage_;  // keeps the source
  MemorySpace& memory_;
  std::vector<std::unique_ptr<PinnedMemory>> pinned_;
};

}  // namespace holdfast
