#pragma once

// Some samples of the stage before, the same in each epoch: what split() and filter() leave.

#include <cstdint>
#include <memory>
#include <vector>

#include "data/stages/stage.h"

namespace holdfast {

class ChosenStage : public ChainedStage {
 public:
  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const override;
  void expect(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override {
    before().expect(seed, epoch, positions_[static_cast<std::size_t>(position)]);
  }
  void load_targets(std::uint64_t seed, std::int64_t epoch, std::int64_t position,
                    std::span<float> targets) const override;
  const Stage* source() const override { return before().source(); }
  SampleOrigin origin(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override;
  PositionSet reach(const PositionSet& positions, std::size_t parent) const override;

 protected:
  // `positions` in the stage before must rise.
  ChosenStage(std::shared_ptr<const Stage> before, std::vector<std::uint32_t> positions);

  const std::vector<std::uint32_t>& positions() const { return positions_; }

 private:
  std::vector<std::uint32_t> positions_;  // in the stage before
};

}  // namespace holdfast
