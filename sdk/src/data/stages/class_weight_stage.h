#pragma once

// The weights of classes as weights of samples (FitOptions::class_weights).

#include <memory>
#include <vector>

#include "data/stages/stage.h"
#include "holdfast/data/dataset.h"

namespace holdfast {

// Gives each sample the weight of its class, times the weight that it has already. source() is null: a source has no
// such weights.
class ClassWeightStage : public ChainedStage {
 public:
  // Throws Error{invalid_argument} for weights that are negative or not finite, and for several targets.
  ClassWeightStage(std::shared_ptr<const Stage> before, std::vector<float> weights);

  // Throws Error{invalid_argument} that names the sample for a target that is not a class with a weight.
  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const override;
  void expect(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override {
    before().expect(seed, epoch, position);
  }
  void load_targets(std::uint64_t seed, std::int64_t epoch, std::int64_t position,
                    std::span<float> targets) const override;
  const Stage* source() const override { return nullptr; }
  SampleOrigin origin(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override {
    return before().origin(seed, epoch, position);
  }
  StageKind kind() const override { return StageKind::class_weights; }
  void describe(nlohmann::ordered_json& stages) const override;

 private:
  std::span<float> targets_before(std::span<float> targets) const;
  void weigh(std::uint64_t seed, std::int64_t epoch, std::int64_t position, std::span<float> targets) const;

  const std::vector<float> weights_;
};

// The same batches, of samples with weights. Throws as the stage does, and after keep_on_device().
Dataset with_class_weights(const Dataset& data, const std::vector<float>& weights);

}  // namespace holdfast
