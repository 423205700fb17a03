#include "train/fit/sample_supply.h"

#include <type_traits>

#include "data/stages/stage.h"

namespace holdfast {

std::unique_ptr<BatchLoader> SampleSupply::open(const Dataset& data, const Course& course) {
  const ShardRange shards = training_.runner->shards();
  const int together = course.shards_together;
  return std::make_unique<BatchLoader>(data, training_.context->seed, training_.context->shards * together,
                                       shards.begin * together, shards.end * together, course.first_epoch,
                                       course.first_batch, course.end_epoch, ways_of(data));
}

SampleWays SampleSupply::ways_of(const Dataset& data) {
  MemorySpace& memory = training_.trainable.memory();
  if (memory.is_host() || !training_.trainable.reads_samples_on_device()) return {};
  // A map() makes samples on the host, for one epoch. The device cannot have them beforehand.
  const bool is_changed = data.last_stage()->source() == nullptr;
  // Training and validation are often parts of one source, which then is on the device, or pinned, once.
  const auto of_source = [&](auto& all) -> auto& {
    for (const auto& samples : all) {
      if (samples->are_source_of(data)) return *samples;
    }
    using Samples = typename std::decay_t<decltype(all)>::value_type::element_type;
    return *all.emplace_back(std::make_unique<Samples>(data, memory));
  };
  if (!is_changed && data.is_kept_on_device()) return {.resident = &of_source(resident_)};
  // Without a thread that loads ahead, nothing could travel while a step is computed.
  if (data.prefetch_depth() == 0) return {};
  SampleWays ways;
  if (can_stage_) ways.stage = [this, data](const HostRows& rows) { return stage(data, rows); };
  if (!is_changed) ways.feeds = of_source(pinned_).make_feeds(data);
  return ways;
}

// A failure is logged once, not with each call.
SampleFeeds SampleSupply::stage(const Dataset& data, const HostRows& rows) {
  SampleFeeds feeds = feeds_of_rows(data, rows, training_.trainable.memory());
  can_stage_ = feeds.are_there();
  return feeds;
}

}  // namespace holdfast
