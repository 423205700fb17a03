#pragma once

// One part of Dataset::split(): samples that were drawn once, in the order that they have in the data.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/stage.h"

namespace holdfast {

// What both parts of one split say of themselves.
struct SplitDraw {
  std::uint64_t seed = 0;
  std::int64_t validation_samples = 0;
  std::string class_digest{};  // of each sample's class; empty where these do not count
};

class SplitStage : public ChainedStage {
 public:
  // `positions` in rising order. `part` is the name of this part.
  SplitStage(std::shared_ptr<const Stage> before, SplitDraw draw, std::string part,
             std::vector<std::uint32_t> positions);

  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const override;
  void load_targets(std::uint64_t seed, std::int64_t epoch, std::int64_t position,
                    std::span<float> targets) const override;
  const Stage* source() const override { return before().source(); }
  std::int64_t source_position(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override;
  PositionSet reach(const PositionSet& positions) const override;
  StageKind kind() const override { return StageKind::split; }
  void describe(nlohmann::ordered_json& stages) const override;

 private:
  SplitDraw draw_;
  std::string part_;
  std::vector<std::uint32_t> positions_;  // in the stage before
};

// Splits the stage before into both parts. Throws as Dataset::split() does.
DatasetSplit split(const std::shared_ptr<const Stage>& before, std::int64_t validation_samples,
                   const SplitOptions& options);

}  // namespace holdfast
