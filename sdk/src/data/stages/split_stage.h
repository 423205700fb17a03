#pragma once

// One part of Dataset::split(): the samples that were drawn for it, in the order of the data.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/stages/stage.h"

namespace holdfast {

// What both parts of a split write into their description.
struct SplitDraw {
  std::uint64_t seed = 0;
  std::int64_t validation_samples = 0;
  std::string class_digest{};  // of the class of each sample; empty unless the split is by label
};

class SplitStage : public ChainedStage {
 public:
  // `positions` must rise. `part` is the name of this part: "training" or "validation".
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

// Splits the stage `before` into both parts. Throws as Dataset::split() does.
DatasetSplit split(const std::shared_ptr<const Stage>& before, std::int64_t validation_samples,
                   const SplitOptions& options);

}  // namespace holdfast
