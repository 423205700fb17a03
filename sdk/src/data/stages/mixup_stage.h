#pragma once

// The stages of Dataset::mixup() and cutmix(): each sample becomes a mixture of itself and a partner.

#include "data/stages/stage.h"

namespace holdfast {

class MixingStage : public ChainedStage {
 public:
  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const override;
  void expect(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override;
  const Stage* source() const override { return nullptr; }
  SampleOrigin origin(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override {
    return before().origin(seed, epoch, position);
  }
  // The partner may be any sample.
  PositionSet reach(const PositionSet& positions, std::size_t /*parent*/) const override {
    return positions.is_empty() ? positions : PositionSet::below(size());
  }
  bool is_same_in_all_epochs() const override { return false; }
  void describe(nlohmann::ordered_json& stages) const override;

 protected:
  // What is drawn once the partner is known, before any sample is loaded.
  struct PairDraws {
    float share = 1;
    Random random;  // for further draws
  };

  // `name` is that of the function of Dataset, and of the stage in descriptions. Throws Error{invalid_argument} as that
  // function does.
  MixingStage(std::shared_ptr<const Stage> before, const char* name, float alpha);

 private:
  // All draws of a sample. The first one is its partner.
  Random draws_of(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const {
    return {seed, Purpose::augmentation, draw_major(*this, epoch), static_cast<std::uint64_t>(position)};
  }
  std::int64_t draw_partner(Random& random) const {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(size())));
  }
  // Mixes `other` into the inputs of a sample. Returns the share of the sample's own targets.
  virtual float mix_inputs(PairDraws draws, std::span<float> own, std::span<float> other) const = 0;

  const char* name_;
  float alpha_;
};

// The mean of both samples.
class MixupStage final : public MixingStage {
 public:
  // Throws Error{invalid_argument} as Dataset::mixup() does.
  MixupStage(std::shared_ptr<const Stage> before, float alpha);
  StageKind kind() const override { return StageKind::mixup; }

 private:
  float mix_inputs(PairDraws draws, std::span<float> own, std::span<float> other) const override;
};

// The sample with a rectangle of the partner's picture.
class CutmixStage final : public MixingStage {
 public:
  // Throws Error{invalid_argument} as Dataset::cutmix() does.
  CutmixStage(std::shared_ptr<const Stage> before, float alpha);
  StageKind kind() const override { return StageKind::cutmix; }

 private:
  float mix_inputs(PairDraws draws, std::span<float> own, std::span<float> other) const override;
};

// The logarithm of a draw from the gamma distribution with this shape, up to a constant factor.
double draw_log_gamma(double shape, Random& random);

// A draw from the beta distribution with both parameters `alpha`: gamma draws by Marsaglia and Tsang ("A Simple Method
// for Generating Gamma Variables", 2000), kept as logarithms, since they underflow for a small alpha.
float draw_share(double alpha, Random& random);

}  // namespace holdfast
