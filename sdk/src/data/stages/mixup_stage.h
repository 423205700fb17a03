#pragma once

// The stage of Dataset::mixup(): each sample becomes a mean of itself and a partner.

#include "data/stages/stage.h"

namespace holdfast {

class MixupStage : public ChainedStage {
 public:
  // Throws Error{invalid_argument} as Dataset::mixup() does.
  MixupStage(std::shared_ptr<const Stage> before, float alpha);

  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const override;
  const Stage* source() const override { return nullptr; }
  std::int64_t source_position(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override {
    return before().source_position(seed, epoch, position);
  }
  // The partner may be any sample.
  PositionSet reach(const PositionSet& positions, std::size_t /*parent*/) const override {
    return positions.is_empty() ? positions : PositionSet::below(size());
  }
  bool is_same_in_all_epochs() const override { return false; }
  StageKind kind() const override { return StageKind::map; }
  void describe(nlohmann::ordered_json& stages) const override;

 private:
  float alpha_;
};

// A draw from the beta distribution with both parameters `alpha`: gamma draws by Marsaglia and Tsang ("A Simple Method
// for Generating Gamma Variables", 2000), kept as logarithms, since they underflow for a small alpha.
float draw_share(double alpha, Random& random);

}  // namespace holdfast
