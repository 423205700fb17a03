#pragma once

// Consecutive samples of each epoch: what take() and skip() leave.

#include "data/stages/stage.h"

namespace holdfast {

class RangeStage : public ChainedStage {
 public:
  // Asserts that `before` has the samples [first, first + size).
  RangeStage(std::shared_ptr<const Stage> before, std::int64_t first, std::int64_t size);

  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const override;
  void expect(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override {
    before().expect(seed, epoch, first_ + position);
  }
  const Stage* source() const override { return before().source(); }
  SampleOrigin origin(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override;
  PositionSet reach(const PositionSet& positions, std::size_t) const override;
  void load_targets(std::uint64_t seed, std::int64_t epoch, std::int64_t position,
                    std::span<float> targets) const override;
  StageKind kind() const override { return StageKind::range; }
  void describe(nlohmann::ordered_json& stages) const override;

 private:
  std::int64_t first_;
};

}  // namespace holdfast
