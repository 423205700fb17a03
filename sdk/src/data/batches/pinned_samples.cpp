// A batch is copied twice on its way to a device if it is first loaded into ordinary memory. From
// pinned memory the device fetches it directly, while the batch before is computed. Pinned memory is
// never swapped out, so it is limited to a share of the host's. See docs/decisions/loading.md.

#include "data/batches/pinned_samples.h"

#include <fmt/format.h>
#include <unistd.h>

#include "data/stages/stage.h"
#include "holdfast/base/error.h"
#include "holdfast/base/log.h"

namespace holdfast {
namespace {

// Pinned samples may take at most a quarter of the memory of the host.
bool is_little_enough(std::size_t bytes) {
  const auto host_bytes =
      static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes <= host_bytes / 4;
}

SampleFeeds feeds_from(const Dataset& dataset, std::span<const float> features, std::span<const float> targets,
                       MemorySpace& memory) {
  return {.pinned = {},
          .features = memory.feed(features, dataset.last_stage()->feature_words()),
          .targets = memory.feed(targets, dataset.last_stage()->target_words())};
}

}  // namespace

PinnedMemory::PinnedMemory(std::span<std::byte> bytes, MemorySpace& memory) : bytes_(bytes), memory_(memory) {
  memory_.pin(bytes_);
}

// If unpinning fails, the device is lost and this process is about to be replaced.
PinnedMemory::~PinnedMemory() {
  try {
    memory_.unpin(bytes_);
  } catch (const Error&) {
    // Nothing else can be done here.
  }
}

SampleFeeds feeds_of_rows(const Dataset& dataset, const HostRows& rows, MemorySpace& memory) {
  if (!is_little_enough(rows.memory.size())) {
    log(LogLevel::info, fmt::format("the batches loaded ahead take more than a quarter of the host's memory, so each "
                                    "one is sent to {} when its step begins",
                                    memory.device()));
    return {};
  }
  // Feeds may be read until the last of them is destroyed, so they keep the registration themselves.
  const auto pinned = std::make_shared<PinnedMemory>(rows.memory, memory);
  SampleFeeds feeds = feeds_from(dataset, rows.features, rows.targets, memory);
  feeds.pinned = pinned;
  return feeds;
}

PinnedSamples::PinnedSamples(const Dataset& dataset, MemorySpace& memory)
    : last_stage_(dataset.last_stage()), memory_(memory) {
  HOLDFAST_ASSERT(last_stage_->source() != nullptr);
  const SourceArrays arrays = last_stage_->source()->arrays();
  if (!is_little_enough(arrays.features.size_bytes() + arrays.targets.size_bytes())) {
    log(LogLevel::info, fmt::format("the samples take more than a quarter of the host's memory, so batches are loaded "
                                    "before they are sent to {}",
                                    memory.device()));
    return;
  }
  // A source that stores samples in another form has no arrays. Then nothing is pinned, and make_feeds() returns none.
  for (const std::span<const float> array : {arrays.features, arrays.targets}) {
    if (array.empty()) continue;
    // Pinning does not write; the cast is needed because the interface takes writable bytes.
    const std::span<float> own(const_cast<float*>(array.data()), array.size());
    pinned_.push_back(std::make_unique<PinnedMemory>(std::as_writable_bytes(own), memory));
  }
}

bool PinnedSamples::are_source_of(const Dataset& dataset) const {
  return dataset.last_stage()->source() == last_stage_->source();
}

SampleFeeds PinnedSamples::make_feeds(const Dataset& dataset) const {
  const SourceArrays arrays = last_stage_->source()->arrays();
  if (arrays.features.empty() || arrays.targets.empty()) return {};
  return feeds_from(dataset, arrays.features, arrays.targets, memory_);
}

}  // namespace holdfast
