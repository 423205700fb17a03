#pragma once

// Samples of a source in pinned memory of the host, from where a batch is on its way to the device while the one before
// is computed. For one thread at a time, as the memory space is.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "holdfast/core/memory_space.h"
#include "holdfast/data/dataset.h"

namespace holdfast {

// For batches of a data set, in the order of its own.
struct SampleFeeds {
  std::unique_ptr<RowFeed> features;  // null where there is nothing better than a copy, as are the targets
  std::unique_ptr<RowFeed> targets;

  bool are_there() const { return features != nullptr && targets != nullptr; }
};

class PinnedSamples {
 public:
  // Of a data set that has a source; the memory space outlives this object. Larger sources than the host has room for
  // are not pinned.
  PinnedSamples(const Dataset& dataset, MemorySpace& memory);
  ~PinnedSamples();
  PinnedSamples(const PinnedSamples&) = delete;
  PinnedSamples& operator=(const PinnedSamples&) = delete;

  // Whether the data set's samples come from the same source.
  bool are_source_of(const Dataset& dataset) const;
  // This object outlives them.
  SampleFeeds make_feeds() const;

 private:
  const std::shared_ptr<const Stage> last_stage_;  // keeps the source
  MemorySpace& memory_;
  std::vector<std::span<std::byte>> pinned_;
};

}  // namespace holdfast
