#pragma once

// One part of Dataset::split(): the samples that were drawn for it, in the order of the data.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/stages/chosen_stage.h"

namespace holdfast {

// What both parts of a split write into their description.
struct SplitDraw {
  std::uint64_t seed = 0;
  std::int64_t validation_samples = 0;
  std::string class_digest{};  // of the class of each sample; empty unless the split is by label
};

class SplitStage : public ChosenStage {
 public:
  // `positions` must rise. `part` is the name of this part: "training" or "validation".
  SplitStage(std::shared_ptr<const Stage> before, SplitDraw draw, std::string part,
             std::vector<std::uint32_t> positions);

  StageKind kind() const override { return StageKind::split; }
  void describe(nlohmann::ordered_json& stages) const override;

 private:
  SplitDraw draw_;
  std::string part_;
};

// Splits the stage `before` into both parts. Throws as Dataset::split() does.
DatasetSplit split(const std::shared_ptr<const Stage>& before, std::int64_t validation_samples,
                   const SplitOptions& options);

}  // namespace holdfast
