#pragma once

// What Dataset::skip_bad() leaves: the samples that can be loaded.

#include <memory>
#include <string>

#include "data/skipped/bad_samples.h"
#include "data/stages/chosen_stage.h"

namespace holdfast {

class SkipStage : public ChosenStage {
 public:
  // Asserts that positions rise and leave a sample.
  SkipStage(const std::shared_ptr<const Stage>& before, const BadSamples& bad);

  const SkippedSamples* skipped() const override { return &skipped_; }
  StageKind kind() const override { return StageKind::skip_bad; }
  void describe(nlohmann::ordered_json& stages) const override;

 private:
  SkippedSamples skipped_;
  std::string digest_;  // of the positions that were left out
};

}  // namespace holdfast
