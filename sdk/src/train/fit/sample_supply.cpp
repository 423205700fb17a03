#include "train/fit/sample_supply.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "data/stages/stage.h"
#include "holdfast/base/cores.h"
#include "holdfast/base/log.h"

namespace holdfast {

std::unique_ptr<BatchLoader> SampleSupply::open(const Dataset& data, const Course& course) {
  const ShardRange shards = training_.runner->shards();
  const int together = course.shards_together;
  SampleWays ways = ways_of(data);
  ways.most_threads = most_loading_threads();
  ways.chose_threads = [this](int threads) { tell_threads(threads); };
  return std::make_unique<BatchLoader>(data, training_.context->seed, training_.context->shards * together,
                                       shards.begin * together, shards.end * together, course.first_epoch,
                                       course.first_batch, course.end_epoch, std::move(ways), course.batches_together);
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

// This replica's share of the host's cores.
int SampleSupply::most_loading_threads() const {
  const int share = training_.context->saving_threads;
  return share > 0 ? share : core_count();
}

// On a loading thread, which ends before the Training does.
void SampleSupply::tell_threads(int threads) const {
  if (!training_.is_primary()) return;
  log(LogLevel::info, fmt::format("prefetch() loads batches with {} threads now, as it measured", threads));
  training_.supervision.report_event("prefetch_threads", nlohmann::json{{"threads", threads}}.dump());
}

// A failure is logged once, not with each call.
SampleFeeds SampleSupply::stage(const Dataset& data, const HostRows& rows) {
  SampleFeeds feeds = feeds_of_rows(data, rows, training_.trainable.memory());
  can_stage_ = feeds.are_there();
  return feeds;
}

}  // namespace holdfast
