#include "data/stages/stage.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/integer_range.h"

namespace holdfast {
namespace {

void check_row(const RowLayout& layout, std::span<float> words, std::int64_t position) {
  for (std::size_t array = 0; array < layout.arrays().size(); ++array) {
    const ArraySpec& spec = layout.arrays()[array];
    if (spec.dtype != DType::i64) continue;
    check_integer_range(ArrayRow(layout, words).elements<std::int64_t>(array), spec, array, position);
  }
}

}  // namespace

nlohmann::ordered_json json_of(const RowLayout& layout) {
  nlohmann::ordered_json arrays = nlohmann::ordered_json::array();
  for (const ArraySpec& array : layout.arrays()) {
    arrays.push_back({{"name", array.name}, {"shape", array.shape.extents()}, {"dtype", name(array.dtype)}});
  }
  return arrays;
}

void check_integers(const SampleLayouts& layouts, Sample sample, std::int64_t position) {
  check_row(layouts.inputs, sample.features, position);
  check_row(layouts.targets, sample.targets, position);
}

void Stage::load_targets(std::uint64_t seed, std::int64_t epoch, std::int64_t position,
                         std::span<float> targets) const {
  // A map may change both at once, so the features are made too and thrown away.
  std::vector<float> features(feature_words());
  load(seed, epoch, position, {.features = features, .targets = targets});
}

bool Stage::is_same_in_all_epochs() const {
  const std::vector<const Stage*> before = parents();
  return std::ranges::all_of(before, [](const Stage* parent) { return parent->is_same_in_all_epochs(); });
}

bool has_stage(const Stage& last, StageKind kind) {
  const std::vector<const Stage*> parents = last.parents();
  return last.kind() == kind ||
         std::ranges::any_of(parents, [&](const Stage* parent) { return has_stage(*parent, kind); });
}

const char* mixing_stage(const Stage& last) {
  if (has_stage(last, StageKind::shuffle)) return "shuffle()";
  return has_stage(last, StageKind::bucketed) ? "bucketed()" : nullptr;
}

}  // namespace holdfast
