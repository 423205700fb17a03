#pragma once

// Stages that follow several data sets: one after another, in turns, or side by side.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "data/stages/stage.h"

namespace holdfast {

class JoinedStage : public Stage {
 public:
  std::vector<const Stage*> parents() const override;
  const Stage* source() const override { return nullptr; }
  void describe(nlohmann::ordered_json& stages) const override;

 protected:
  using Parts = std::vector<std::shared_ptr<const Stage>>;

  JoinedStage(SampleLayouts layouts, std::int64_t size, Parts parts);

  const Stage& part(std::size_t index) const { return *parts_[index]; }
  std::size_t parts() const { return parts_.size(); }
  // Two parts may have stages of one number, whose draws would be the same. So each part of this stage has a seed of
  // its own. Parts of parts share one where the sum of their places is the same.
  static std::uint64_t seed_of_part(std::uint64_t seed, std::size_t part);
  // The origin of a sample of a part, if that has a name for it. A number alone would not say of which part it is.
  std::optional<SampleOrigin> named_origin(std::size_t part, std::uint64_t seed, std::int64_t epoch,
                                           std::int64_t position) const;

 private:
  Parts parts_;
};

// A sample at a position is one of a part.
class AlternatingStage : public JoinedStage {
 public:
  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const override;
  void expect(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override;
  void load_targets(std::uint64_t seed, std::int64_t epoch, std::int64_t position,
                    std::span<float> targets) const override;
  SampleOrigin origin(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override;
  PositionSet reach(const PositionSet& positions, std::size_t parent) const override;

 protected:
  // Samples of these parts in turns from `begin` on: the sample of `round` of the first part, then of the next one.
  struct Run {
    std::int64_t begin = 0;               // position of its first sample
    std::int64_t rounds = 0;              // samples of each of its parts
    std::int64_t first_round = 0;         // position in the parts of the first sample
    std::vector<std::size_t> parts = {};  // in the order of their turns
  };

  // Throws Error{invalid_argument}, with the name of the function, for no parts, and for parts of other arrays.
  AlternatingStage(const char* function, Parts parts, std::vector<Run> runs);

 private:
  struct SampleOfPart {
    std::size_t part = 0;
    std::int64_t position = 0;
  };

  SampleOfPart place_of(std::int64_t position) const;

  std::vector<Run> runs_;  // by rising begin
};

// All samples of the first part, then those of the second one, and so on.
class ConcatenateStage : public AlternatingStage {
 public:
  explicit ConcatenateStage(const Parts& parts);
  StageKind kind() const override { return StageKind::concatenate; }
};

// One sample of each part in turns; parts that have no more are passed over.
class InterleaveStage : public AlternatingStage {
 public:
  explicit InterleaveStage(const Parts& parts);
  StageKind kind() const override { return StageKind::interleave; }
};

// The arrays of all parts side by side.
class ZipStage : public JoinedStage {
 public:
  explicit ZipStage(Parts parts);
  StageKind kind() const override { return StageKind::zip; }
  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const override;
  SampleOrigin origin(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override;
  void expect(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override;
};

}  // namespace holdfast
