#pragma once

// Several epochs of the stage before as one epoch. Round r of epoch e is epoch e * count + r of that
// stage, so shuffles and draws differ between rounds.

#include "data/stages/stage.h"

namespace holdfast {

class RepeatStage : public ChainedStage {
 public:
  RepeatStage(std::shared_ptr<const Stage> before, std::int64_t count);

  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const override;
  void expect(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override {
    before().expect(seed, round_of(epoch, position), position % before().size());
  }
  const Stage* source() const override { return before().source(); }
  SampleOrigin origin(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override;
  PositionSet reach(const PositionSet& positions, std::size_t) const override;
  StageKind kind() const override { return StageKind::repeat; }
  void describe(nlohmann::ordered_json& stages) const override;

 private:
  // The epoch of the stage before that a position lies in. Throws Error{unsupported} beyond what epochs may count to.
  std::int64_t round_of(std::int64_t epoch, std::int64_t position) const;

  std::int64_t count_;
};

}  // namespace holdfast
