#include "data/stages/chosen_stage.h"

#include <utility>

namespace holdfast {

ChosenStage::ChosenStage(std::shared_ptr<const Stage> before, std::vector<std::uint32_t> positions)
    : ChainedStage(std::move(before), static_cast<std::int64_t>(positions.size())), positions_(std::move(positions)) {}

// The epoch goes through as it is: positions are the same in each one, and what a map before draws is not.
void ChosenStage::load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const {
  before().load(seed, epoch, positions_[static_cast<std::size_t>(position)], destination);
}

void ChosenStage::load_targets(std::uint64_t seed, std::int64_t epoch, std::int64_t position,
                               std::span<float> targets) const {
  before().load_targets(seed, epoch, positions_[static_cast<std::size_t>(position)], targets);
}

SampleOrigin ChosenStage::origin(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const {
  return before().origin(seed, epoch, positions_[static_cast<std::size_t>(position)]);
}

// Exact, and as long as the set of positions: a draw of single samples gives as many ranges.
PositionSet ChosenStage::reach(const PositionSet& positions, std::size_t) const {
  std::vector<PositionSet::Range> chosen;
  for (const PositionSet::Range& range : positions.ranges()) {
    // Positions rise, so neighbours join here and the list stays as short as it can be.
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      const std::int64_t position = positions_[static_cast<std::size_t>(i)];
      if (!chosen.empty() && chosen.back().end == position) {
        ++chosen.back().end;
      } else {
        chosen.push_back({position, position + 1});
      }
    }
  }
  return PositionSet(std::move(chosen));
}

}  // namespace holdfast
