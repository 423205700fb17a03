#include "data/stages/range_stage.h"

#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"

namespace holdfast {

RangeStage::RangeStage(std::shared_ptr<const Stage> before, std::int64_t first, std::int64_t size)
    : ChainedStage(std::move(before), size), first_(first) {
  // The functions of Dataset cut what users give to the samples that exist.
  HOLDFAST_ASSERT(first >= 0 && size >= 0 && first + size <= this->before().size());
}

void RangeStage::load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const {
  before().load(seed, epoch, first_ + position, destination);
}

SampleOrigin RangeStage::origin(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const {
  // The epoch stays: take() and skip() after a shuffle take other samples in each epoch.
  return before().origin(seed, epoch, first_ + position);
}

// A range moves positions and neither adds nor loses any, so the answer is exact.
PositionSet RangeStage::reach(const PositionSet& positions, std::size_t) const {
  std::vector<PositionSet::Range> moved;
  for (const PositionSet::Range& range : positions.ranges())
    moved.push_back({range.begin + first_, range.end + first_});
  return PositionSet(std::move(moved));
}

void RangeStage::load_targets(std::uint64_t seed, std::int64_t epoch, std::int64_t position,
                              std::span<float> targets) const {
  before().load_targets(seed, epoch, first_ + position, targets);
}

void RangeStage::describe(nlohmann::ordered_json& stages) const {
  before().describe(stages);
  stages.push_back({{"kind", "range"}, {"first", first_}, {"size", size()}});
}

}  // namespace holdfast
