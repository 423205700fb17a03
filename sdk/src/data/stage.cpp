#include "data/stage.h"

#include <vector>

namespace holdfast {

void Stage::load_targets(std::uint64_t seed, std::int64_t epoch, std::int64_t position,
                         std::span<float> targets) const {
  // A map may change both at once, so the features are made too and thrown away.
  std::vector<float> features(feature_words());
  load(seed, epoch, position, {.features = features, .targets = targets});
}

const Stage& origin_of(const Stage& last) {
  const Stage* stage = &last;
  while (stage->previous() != nullptr) stage = stage->previous();
  return *stage;
}

bool has_stage(const Stage& last, StageKind kind) {
  for (const Stage* stage = &last; stage != nullptr; stage = stage->previous()) {
    if (stage->kind() == kind) return true;
  }
  return false;
}

}  // namespace holdfast
