// What code may ask of a whole chain of stages. Each question is answered stage by stage, so a stage that joins several
// data sets needs no other code than its parents(). See docs/decisions/stages.md.

#include "data/stages/stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "core/integer_range.h"

namespace holdfast {
namespace {

void check_row(const RowLayout& layout, std::span<float> words, std::int64_t position) {
  for (std::size_t array = 0; array < layout.arrays().size(); ++array) {
    const ArraySpec& spec = layout.arrays()[array];
    // The other types of samples fit into what models compute with.
    if (spec.dtype != DType::i64) continue;
    check_integer_range(ArrayRow(layout, words).elements<std::int64_t>(array), spec, array, position);
  }
}

// Parts of one table have what was left out of its file in common, which counts once.
void add_skipped(const Stage& stage, std::set<const void*>& seen, SkippedSamples& all) {
  // A stage that several data sets share is found on several ways.
  if (!seen.insert(&stage).second) return;
  for (const Stage* parent : stage.parents()) add_skipped(*parent, seen, all);
  const SkippedSamples* const own = stage.skipped();
  if (own == nullptr || !seen.insert(own).second) return;
  all.count += own->count;
  all.first.insert(all.first.end(), own->first.begin(), own->first.end());
}

}  // namespace

// It stands in descriptions and caches, which later starts compare. So its members and their order are data.
nlohmann::ordered_json json_of(const RowLayout& layout) {
  nlohmann::ordered_json arrays = nlohmann::ordered_json::array();
  for (const ArraySpec& array : layout.arrays()) {
    arrays.push_back({{"name", array.name}, {"shape", array.shape.extents()}, {"dtype", name(array.dtype)}});
  }
  return arrays;
}

std::string text_of_samples(const Stage& stage) {
  nlohmann::ordered_json stages = nlohmann::ordered_json::array();
  stage.describe(stages);
  const nlohmann::ordered_json text = {{"size", stage.size()},
                                       {"inputs", json_of(stage.layouts().inputs)},
                                       {"targets", json_of(stage.layouts().targets)},
                                       {"stages", std::move(stages)}};
  // Names of maps may hold any bytes, and dump() would throw for those that are not UTF-8.
  return text.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
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

void Stage::load_run(std::uint64_t seed, std::int64_t epoch, std::int64_t first, Sample rows) const {
  const std::size_t features = feature_words();
  const std::size_t targets = target_words();
  const std::size_t count = features > 0 ? rows.features.size() / features : rows.targets.size() / targets;
  for (std::size_t i = 0; i < count; ++i) {
    load(seed, epoch, first + static_cast<std::int64_t>(i),
         {.features = rows.features.subspan(i * features, features),
          .targets = rows.targets.subspan(i * targets, targets)});
  }
}

bool Stage::reads_files() const {
  const std::vector<const Stage*> before = parents();
  return std::ranges::any_of(before, [](const Stage* parent) { return parent->reads_files(); });
}

bool Stage::is_same_in_all_epochs() const {
  const std::vector<const Stage*> before = parents();
  return std::ranges::all_of(before, [](const Stage* parent) { return parent->is_same_in_all_epochs(); });
}

SampleLayouts weighted_layouts(const SampleLayouts& before) {
  if (before.has_weights) return before;
  std::vector<ArraySpec> targets(before.targets.arrays().begin(), before.targets.arrays().end());
  // One weight for the whole sample, at the end of the row: so the row of the stage before is the begin of the new one.
  targets.push_back({.name = kSampleWeightName, .shape = {}});
  return {.inputs = before.inputs, .targets = RowLayout(std::move(targets)), .has_weights = true};
}

bool has_stage(const Stage& last, StageKind kind) {
  const std::vector<const Stage*> parents = last.parents();
  return last.kind() == kind ||
         std::ranges::any_of(parents, [&](const Stage* parent) { return has_stage(*parent, kind); });
}

std::string name_of_sample(const Stage& last, std::uint64_t seed, std::int64_t epoch, std::int64_t position) {
  const SampleOrigin origin = last.origin(seed, epoch, position);
  const std::string place = origin.stage->place(origin.position);
  // The origin of a window is that of its first sample.
  return fmt::format("sample {}{}{}", origin.position, place.empty() ? "" : fmt::format(" ({})", place),
                     has_stage(last, StageKind::window) ? " and those joined with it" : "");
}

SkippedSamples skipped_by(std::span<const Stage* const> last) {
  SkippedSamples all;
  std::set<const void*> seen;
  for (const Stage* stage : last) add_skipped(*stage, seen, all);
  return all;
}

const char* mixing_stage(const Stage& last) {
  if (has_stage(last, StageKind::shuffle)) return "shuffle()";
  return has_stage(last, StageKind::bucketed) ? "bucketed()" : nullptr;
}

}  // namespace holdfast
