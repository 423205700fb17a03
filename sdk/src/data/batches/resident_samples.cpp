// The source is copied to the device once, in pieces, and batches are gathered there. A run of
// consecutive samples is not even gathered: the batch is a view of the source. See
// docs/decisions/loading.md.

#include "data/batches/resident_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "data/stages/stage.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

bool follow_each_other(std::span<const std::int64_t> positions) {
  return std::adjacent_find(positions.begin(), positions.end(),
                            [](std::int64_t one, std::int64_t next) { return next != one + 1; }) == positions.end();
}

}  // namespace

ResidentSamples::Column::Column(std::size_t floats, std::int64_t samples, MemorySpace& memory)
    : width(floats), size(floats * static_cast<std::size_t>(samples)), gathered(memory) {
  try {
    all = memory.allocate(size);
  } catch (const Error& failure) {
    // Another failure, such as a lost device, has nothing to do with the size of the samples.
    if (failure.code() != ErrorCode::out_of_memory) throw;
    throw Error(
        ErrorCode::out_of_memory,
        fmt::format("cannot keep {} samples on {}: {}; leave out keep_on_device() to send each batch when it is needed",
                    samples, memory.device(), failure.what()));
  }
}

std::span<const float> ResidentSamples::Column::take(std::span<const std::int64_t> positions, MemorySpace& memory) {
  const std::span<const float> source(all.get(), size);
  if (positions.empty()) return {};
  const std::size_t floats = positions.size() * width;
  if (follow_each_other(positions)) return source.subspan(static_cast<std::size_t>(positions.front()) * width, floats);
  gathered.grow_to(floats);
  memory.gather(source, positions, {gathered.data(), floats});
  return {gathered.data(), floats};
}

ResidentSamples::ResidentSamples(const Dataset& dataset, MemorySpace& memory)
    : last_stage_(dataset.last_stage()),
      source_(dataset.last_stage()->source()),
      memory_(memory),
      // The assertion below comes after these members, which must not follow a null pointer before it.
      features_(last_stage_->feature_words(), source_ == nullptr ? 0 : source_->size(), memory),
      targets_(last_stage_->target_words(), source_ == nullptr ? 0 : source_->size(), memory) {
  HOLDFAST_ASSERT(source_ != nullptr);
  load(*source_);
}

bool ResidentSamples::are_source_of(const Dataset& dataset) const {
  return dataset.last_stage()->source() == source_;
}

// Copies piece by piece, since the host may not have room for a second copy of all samples.
void ResidentSamples::load(const Stage& source) {
  constexpr std::size_t kPieceFloats = std::size_t{4} << 20;
  const std::size_t widest = std::max<std::size_t>({features_.width, targets_.width, 1});
  const auto piece = static_cast<std::int64_t>(std::max<std::size_t>(kPieceFloats / widest, 1));
  std::vector<float> features;
  std::vector<float> targets;
  for (std::int64_t first = 0; first < source.size(); first += piece) {
    const auto begin = static_cast<std::size_t>(first);
    const auto count = static_cast<std::size_t>(std::min(piece, source.size() - first));
    features.resize(count * features_.width);
    targets.resize(count * targets_.width);
    for (std::size_t i = 0; i < count; ++i) {
      // A source has the same samples for every seed and epoch.
      source.load(0, 0, first + static_cast<std::int64_t>(i),
                  {.features = std::span(features).subspan(i * features_.width, features_.width),
                   .targets = std::span(targets).subspan(i * targets_.width, targets_.width)});
    }
    memory_.copy_from_host(features, {features_.all.get() + begin * features_.width, features.size()});
    memory_.copy_from_host(targets, {targets_.all.get() + begin * targets_.width, targets.size()});
  }
}

ResidentSamples::Views ResidentSamples::take(std::span<const std::int64_t> positions) {
  return {features_.take(positions, memory_), targets_.take(positions, memory_)};
}

}  // namespace holdfast
