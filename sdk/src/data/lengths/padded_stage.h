#pragma once

// Makes samples of different lengths equally long.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/lengths/sample_length.h"
#include "data/stages/stage.h"

namespace holdfast {

class PaddedStage : public ChainedStage {
 public:
  // Throws as Dataset::padded() does.
  PaddedStage(std::shared_ptr<const Stage> before, std::int64_t length, const PaddedOptions& options);

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
  StageKind kind() const override { return StageKind::padded; }
  void describe(nlohmann::ordered_json& stages) const override;

 private:
  // Which positions of a sample stay, and where they go.
  struct Kept {
    std::int64_t from = 0;
    std::int64_t to = 0;
    std::int64_t count = 0;
  };

  // Throws Error{invalid_argument} for a length that the sample cannot have, and for one that would be cut.
  Kept kept_of(const ArrayRow& inputs, std::int64_t position) const;
  void pad_inputs(const ArrayRow& from, const Kept& kept, std::span<float> words) const;
  void pad_targets(std::span<float> words_before, const Kept& kept, std::span<float> words) const;

  SampleLength length_of_;
  std::int64_t room_;    // positions that samples have before this stage
  std::int64_t length_;  // and after it
  double value_;
  PaddingSide side_;
  Truncation truncation_;
  LengthInput keep_;
  std::vector<std::vector<std::byte>> padding_;  // one element of each input before this stage
  bool pads_targets_;
};

}  // namespace holdfast
