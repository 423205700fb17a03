#pragma once

// Several samples that follow one another as one sample.

#include <cstdint>
#include <memory>

#include "data/stages/stage.h"

namespace holdfast {

class WindowStage : public ChainedStage {
 public:
  // Throws as Dataset::window() does.
  WindowStage(std::shared_ptr<const Stage> before, std::int64_t count, const WindowOptions& options);

  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const override;
  void expect(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override;
  const Stage* source() const override { return nullptr; }
  SampleOrigin origin(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override {
    return before().origin(seed, epoch, position * options_.shift);
  }
  PositionSet reach(const PositionSet& positions, std::size_t parent) const override;
  StageKind kind() const override { return StageKind::window; }
  void describe(nlohmann::ordered_json& stages) const override;

 private:
  std::int64_t count_;
  WindowOptions options_;
};

}  // namespace holdfast
