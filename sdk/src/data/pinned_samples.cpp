#include "data/pinned_samples.h"

#include <unistd.h>

#include "data/stage.h"
#include "holdfast/base/error.h"
#include "holdfast/base/log.h"

namespace holdfast {
namespace {

// What is pinned is never swapped out: no more than a quarter of what the host has.
bool is_little_enough(const SourceArrays& arrays) {
  const auto host_bytes =
      static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return arrays.features.size_bytes() + arrays.targets.size_bytes() <= host_bytes / 4;
}

}  // namespace

PinnedSamples::PinnedSamples(const Dataset& dataset, MemorySpace& memory)
    : last_stage_(dataset.last_stage()), memory_(memory) {
  HOLDFAST_ASSERT(last_stage_->source() != nullptr);
  const SourceArrays arrays = last_stage_->source()->arrays();
  if (!is_little_enough(arrays)) {
    log(LogLevel::info, "the samples are more than a quarter of the host's memory, so that batches are not sent to " +
                            memory.device() + " ahead of their steps");
    return;
  }
  for (const std::span<const float> array : {arrays.features, arrays.targets}) {
    if (array.empty()) continue;
    // Nobody writes there: to pin is no more than to keep it where it is.
    pinned_.push_back(std::as_writable_bytes(std::span(const_cast<float*>(array.data()), array.size())));
    memory_.pin(pinned_.back());
  }
}

PinnedSamples::~PinnedSamples() {
  for (const std::span<std::byte> bytes : pinned_) {
    try {
      memory_.unpin(bytes);
    } catch (const Error&) {
      // The device is lost, and this process about to be replaced.
    }
  }
}

bool PinnedSamples::are_source_of(const Dataset& dataset) const {
  return dataset.last_stage()->source() == last_stage_->source();
}

SampleFeeds PinnedSamples::make_feeds() const {
  const SourceArrays arrays = last_stage_->source()->arrays();
  if (arrays.features.empty() || arrays.targets.empty()) return {};
  const auto floats_of = [](const Shape& shape) { return static_cast<std::size_t>(shape.element_count()); };
  return {memory_.feed(arrays.features, floats_of(last_stage_->feature_shape())),
          memory_.feed(arrays.targets, floats_of(last_stage_->target_shape()))};
}

}  // namespace holdfast
