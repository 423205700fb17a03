#pragma once

// The samples that fill the last batch of an epoch (BatchOptions::pad_remainder).

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>

#include "data/stages/stage.h"
#include "holdfast/data/dataset.h"

namespace holdfast {

// Adds copies of the last sample of each epoch, so that full batches hold all samples. All samples get weights, which
// are 0 for the copies.
class PaddedBatchStage : public ChainedStage {
 public:
  // Asserts that `before` has samples.
  PaddedBatchStage(std::shared_ptr<const Stage> before, std::int64_t batch);

  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const override;
  void expect(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override {
    before().expect(seed, epoch, position_before(position));
  }
  void load_targets(std::uint64_t seed, std::int64_t epoch, std::int64_t position,
                    std::span<float> targets) const override;
  const Stage* source() const override { return nullptr; }
  SampleOrigin origin(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override {
    return before().origin(seed, epoch, position_before(position));
  }
  PositionSet reach(const PositionSet& positions, std::size_t parent) const override;
  StageKind kind() const override { return StageKind::padded_batches; }
  void describe(nlohmann::ordered_json& stages) const override;

  // The samples that it added to an epoch.
  std::int64_t padding() const { return size() - before().size(); }
  const std::shared_ptr<const Stage>& unpadded() const { return shared_before(); }

 private:
  std::int64_t position_before(std::int64_t position) const { return std::min(position, before().size() - 1); }
  // The row of the stage before, which begins this one.
  std::span<float> targets_before(std::span<float> targets) const;
  void weigh(std::int64_t position, std::span<float> targets) const;
};

// The same batches without the samples that batch() added to the last one, and without the weights of classes that may
// follow them: for predictions, which read no targets.
Dataset without_padding(const Dataset& data);

}  // namespace holdfast
