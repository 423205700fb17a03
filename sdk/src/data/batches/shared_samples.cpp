// Finds out whether training and validation have samples in common, from the stages alone: no sample is read. The
// answer must hold for every seed and every number of epochs, so it is about what stages can reach. See
// docs/decisions/data.md.

#include "data/batches/shared_samples.h"

#include <algorithm>
#include <string>
#include <vector>

#include "data/stages/stage.h"

namespace holdfast {
namespace {

std::vector<std::string> feature_maps_of(const Stage& last) {
  std::vector<std::string> names;
  for (const Stage* stage = &last; stage != nullptr; stage = stage->previous()) {
    if (stage->kind() == StageKind::feature_map) names.push_back(stage->map_name());
  }
  return names;
}

// Maps that read samples by number may read two files with the same numbers. The names of the maps tell
// the files apart, as they do for a run that resumes.
bool read_one_file(const std::vector<std::string>& maps_of_a, const std::vector<std::string>& maps_of_b) {
  return maps_of_a == maps_of_b && std::find(maps_of_a.begin(), maps_of_a.end(), "") == maps_of_a.end();
}

bool have_one_source(const Stage& a, const Stage& b) {
  const Stage& source_of_a = origin_of(a);
  const Stage& source_of_b = origin_of(b);
  // The usual case, and it saves the comparison of contents.
  if (&source_of_a == &source_of_b) return true;
  const std::vector<std::string> maps_of_a = feature_maps_of(a);
  const std::vector<std::string> maps_of_b = feature_maps_of(b);
  // If only one side has such a map, the other one has the samples themselves. Equal contents are then one source.
  if (!maps_of_a.empty() && !maps_of_b.empty() && !read_one_file(maps_of_a, maps_of_b)) return false;
  return source_of_a.content() == source_of_b.content();
}

enum class Shuffles { heed, pass_over };

// The positions in the source to which the samples of the data set can lead.
PositionSet reached_by(const Dataset& dataset, Shuffles shuffles) {
  // Samples at the end that fill no batch may be left out.
  const bool is_cut = dataset.batch_size() > 0 && dataset.batches() == dataset.size() / dataset.batch_size();
  const std::int64_t size = is_cut ? dataset.batches() * dataset.batch_size() : dataset.size();
  PositionSet positions = PositionSet::below(size);
  for (const Stage* stage = dataset.last_stage().get(); stage != nullptr; stage = stage->previous()) {
    if (stage->kind() == StageKind::shuffle && shuffles == Shuffles::pass_over) continue;
    positions = stage->reach(positions);
  }
  return positions;
}

}  // namespace

std::optional<SharedSamples> shared_samples(const Dataset& training, const Dataset& validation) {
  if (!have_one_source(*training.last_stage(), *validation.last_stage())) return std::nullopt;
  const PositionSet of_validation = reached_by(validation, Shuffles::heed);
  const PositionSet shared = reached_by(training, Shuffles::heed).intersection(of_validation);
  if (shared.is_empty()) return std::nullopt;
  // What would be shared if no order changed. If that is nothing, the shuffle is the mistake, and the message says so.
  const PositionSet shared_anyway =
      reached_by(training, Shuffles::pass_over).intersection(reached_by(validation, Shuffles::pass_over));
  return SharedSamples{.shared = shared.count(),
                       .of_validation = of_validation.count(),
                       .are_mixed_by_shuffle = shared_anyway.is_empty()};
}

}  // namespace holdfast
