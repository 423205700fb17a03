// Finds out whether training and validation have samples in common, from the stages alone: no sample is read. The
// answer must hold for every seed and every number of epochs, so it is about what stages can reach. See
// docs/decisions/stages.md.

#include "data/batches/shared_samples.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "data/stages/stage.h"

namespace holdfast {
namespace {

// The samples of one source that a data set can lead to, and the maps on the way there, the last one first.
struct Reached {
  const Stage* source;
  std::vector<std::string> maps;
  PositionSet positions;
};

// Maps that read samples by number may read two files with the same numbers. The names of the maps tell
// the files apart, as they do for a run that resumes.
bool read_one_file(const std::vector<std::string>& maps_of_a, const std::vector<std::string>& maps_of_b) {
  return maps_of_a == maps_of_b && std::find(maps_of_a.begin(), maps_of_a.end(), "") == maps_of_a.end();
}

bool have_one_source(const Reached& a, const Reached& b) {
  // The usual case, and it saves the comparison of contents.
  if (a.source == b.source) return true;
  // If only one side has such a map, the other one has the samples themselves. Equal contents are then one source.
  if (!a.maps.empty() && !b.maps.empty() && !read_one_file(a.maps, b.maps)) return false;
  return a.source->content() == b.source->content();
}

enum class Shuffles { heed, pass_over };

// Follows the stages to all sources.
void follow(const Stage& stage, PositionSet positions, std::vector<std::string> maps, Shuffles shuffles,
            std::vector<Reached>& reached) {
  if (stage.kind() == StageKind::feature_map) maps.push_back(stage.map_name());
  const std::vector<const Stage*> parents = stage.parents();
  if (parents.empty()) reached.push_back({&stage, std::move(maps), std::move(positions)});
  for (std::size_t parent = 0; parent < parents.size(); ++parent) {
    const bool is_passed = mixes_samples(stage.kind()) && shuffles == Shuffles::pass_over;
    follow(*parents[parent], is_passed ? positions : stage.reach(positions, parent), maps, shuffles, reached);
  }
}

std::vector<Reached> reached_by(const Dataset& dataset, Shuffles shuffles) {
  // Samples at the end that fill no batch may be left out.
  const bool is_cut = dataset.batch_size() > 0 && dataset.batches() == dataset.size() / dataset.batch_size();
  const std::int64_t size = is_cut ? dataset.batches() * dataset.batch_size() : dataset.size();
  std::vector<Reached> reached;
  follow(*dataset.last_stage(), PositionSet::below(size), {}, shuffles, reached);
  return reached;
}

// How many samples for validation are also reached by training.
std::int64_t count_shared(const std::vector<Reached>& training, const std::vector<Reached>& validation) {
  std::int64_t count = 0;
  for (const Reached& of_validation : validation) {
    std::vector<PositionSet::Range> shared;
    for (const Reached& of_training : training) {
      if (!have_one_source(of_training, of_validation)) continue;
      const PositionSet both = of_training.positions.intersection(of_validation.positions);
      shared.insert(shared.end(), both.ranges().begin(), both.ranges().end());
    }
    count += PositionSet(std::move(shared)).count();
  }
  return count;
}

}  // namespace

std::optional<SharedSamples> shared_samples(const Dataset& training, const Dataset& validation) {
  const std::vector<Reached> of_validation = reached_by(validation, Shuffles::heed);
  const std::int64_t shared = count_shared(reached_by(training, Shuffles::heed), of_validation);
  if (shared == 0) return std::nullopt;
  std::int64_t all = 0;
  for (const Reached& reached : of_validation) all += reached.positions.count();
  // What would be shared if no order changed. If that is nothing, the shuffle is the mistake, and the message says so.
  const std::int64_t shared_anyway =
      count_shared(reached_by(training, Shuffles::pass_over), reached_by(validation, Shuffles::pass_over));
  return SharedSamples{.shared = shared, .of_validation = all, .are_mixed_by_shuffle = shared_anyway == 0};
}

}  // namespace holdfast
