// A joined stage keeps random access: which part a position belongs to is computed from sizes that are known when the
// data sets are joined. Readers in turns, as other frameworks have them, would be state. See docs/decisions/stages.md.

#include "data/stages/joined_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

Error refused_join(const char* function, const std::string& reason) {
  return Error(ErrorCode::invalid_argument, fmt::format("{}(): {}", function, reason));
}

std::string text_of_layouts(const SampleLayouts& layouts) {
  const auto texts = [](const RowLayout& layout) {
    std::vector<std::string> arrays;
    for (const ArraySpec& array : layout.arrays()) arrays.push_back(array.to_string());
    return fmt::format("{}", fmt::join(arrays, ", "));
  };
  // Weights are the last target, and those of other kinds may have one name and one shape.
  return fmt::format("inputs {} and targets {}{}", texts(layouts.inputs), texts(layouts.targets),
                     layouts.has_weights_of_targets ? " (weights of each target)"
                     : layouts.has_weights          ? " (weights of samples or positions)"
                                                    : "");
}

const Stage& first_part(const char* function, const std::vector<std::shared_ptr<const Stage>>& parts) {
  if (parts.empty()) throw refused_join(function, "needs at least one data set");
  return *parts[0];
}

// Above the numbers of all parts, so no stage that follows has the number, and thus the draws, of one of them.
std::uint32_t number_after(const std::vector<std::shared_ptr<const Stage>>& parts) {
  std::uint32_t most = 0;
  for (const auto& part : parts) most = std::max(most, part->number());
  return most + 1;
}

// Names count too: a model could not tell by which of two names it should take an array.
const SampleLayouts& layouts_of_all(const char* function, const std::vector<std::shared_ptr<const Stage>>& parts) {
  const SampleLayouts& first = first_part(function, parts).layouts();
  for (const auto& part : parts) {
    const SampleLayouts& other = part->layouts();
    const bool has_same_weights =
        other.has_weights == first.has_weights && other.has_weights_of_targets == first.has_weights_of_targets;
    if (other.inputs == first.inputs && other.targets == first.targets && has_same_weights) continue;
    throw refused_join(function,
                       fmt::format("samples of all data sets need the same arrays, but one has {}, and another "
                                   "one {}; map() makes other inputs",
                                   text_of_layouts(first), text_of_layouts(other)));
  }
  return first;
}

std::int64_t sum_of_sizes(const std::vector<std::shared_ptr<const Stage>>& parts) {
  std::int64_t sum = 0;
  for (const auto& part : parts) {
    if (__builtin_add_overflow(sum, part->size(), &sum)) {
      throw Error(ErrorCode::unsupported, "the sizes of the data sets to join exceed 63 bits; repeat() them less");
    }
  }
  return sum;
}

SampleLayouts layouts_side_by_side(const std::vector<std::shared_ptr<const Stage>>& parts) {
  const std::int64_t size = first_part("zip", parts).size();
  std::vector<ArraySpec> inputs;
  std::vector<ArraySpec> targets;
  for (std::size_t index = 0; index < parts.size(); ++index) {
    const auto& part = parts[index];
    if (part->size() != size) {
      throw refused_join(
          "zip", fmt::format("the data sets have {} and {} samples; take() as many of each", size, part->size()));
    }
    // Weights are the last target by definition. Those of an earlier part would stand in the middle, as an ordinary
    // target. Asked by place, since one data set may be given twice.
    if (part->layouts().has_weights && index + 1 < parts.size()) {
      throw refused_join("zip", "only the last data set may have sample weights; put it last");
    }
    const auto append = [](std::vector<ArraySpec>& all, const RowLayout& layout) {
      all.insert(all.end(), layout.arrays().begin(), layout.arrays().end());
    };
    append(inputs, part->layouts().inputs);
    append(targets, part->layouts().targets);
  }
  return {.inputs = RowLayout(std::move(inputs)),
          .targets = RowLayout(std::move(targets)),
          .has_weights = parts.back()->layouts().has_weights,
          .has_weights_of_targets = parts.back()->layouts().has_weights_of_targets};
}

// Copies the arrays of one row to those of another one from `first` on, and returns the number of the next array.
std::size_t copy_arrays(const RowLayout& from_layout, std::span<float> from, const RowLayout& to_layout,
                        std::span<float> to, std::size_t first) {
  for (std::size_t array = 0; array < from_layout.arrays().size(); ++array) {
    const std::span<std::byte> bytes = ArrayRow(from_layout, from).bytes(array);
    std::ranges::copy(bytes, ArrayRow(to_layout, to).bytes(first++).begin());
  }
  return first;
}

}  // namespace

JoinedStage::JoinedStage(SampleLayouts layouts, std::int64_t size, Parts parts)
    : Stage(std::move(layouts), size, number_after(parts)), parts_(std::move(parts)) {}

std::vector<const Stage*> JoinedStage::parents() const {
  std::vector<const Stage*> parents;
  for (const auto& part : parts_) parents.push_back(part.get());
  return parents;
}

std::uint64_t JoinedStage::seed_of_part(std::uint64_t seed, std::size_t part) {
  // The odd constant of Weyl sequences, 2^64 divided by the golden ratio: no two parts of one stage get one seed.
  // Places of nested stages add up, so part 1 of part 0 has the seed of part 0 of part 1. Another rule would change the
  // bits of runs that exist.
  return seed + part * 0x9E3779B97F4A7C15U;
}

std::optional<SampleOrigin> JoinedStage::named_origin(std::size_t part, std::uint64_t seed, std::int64_t epoch,
                                                      std::int64_t position) const {
  const SampleOrigin origin = parts_[part]->origin(seed_of_part(seed, part), epoch, position);
  // Only messages ask, so the text may be made twice.
  return origin.stage->place(origin.position).empty() ? std::nullopt : std::optional(origin);
}

void JoinedStage::describe(nlohmann::ordered_json& stages) const {
  nlohmann::ordered_json parts = nlohmann::ordered_json::array();
  for (const auto& part : parts_) {
    nlohmann::ordered_json stages_of_part = nlohmann::ordered_json::array();
    part->describe(stages_of_part);
    parts.push_back(std::move(stages_of_part));
  }
  const char* name = kind() == StageKind::zip ? "zip" : kind() == StageKind::interleave ? "interleave" : "concatenate";
  stages.push_back({{"kind", name}, {"parts", std::move(parts)}});
}

AlternatingStage::AlternatingStage(const char* function, Parts parts, std::vector<Run> runs)
    : JoinedStage(layouts_of_all(function, parts), sum_of_sizes(parts), parts), runs_(std::move(runs)) {}

// The last run that begins at or before the position. Runs are never empty for a position that exists: one without
// rounds ends where it begins, and the next one has the same begin.
AlternatingStage::SampleOfPart AlternatingStage::place_of(std::int64_t position) const {
  const auto after = std::ranges::upper_bound(runs_, position, {}, &Run::begin);
  const Run& run = *std::prev(after);
  const std::int64_t offset = position - run.begin;
  const auto turns = static_cast<std::int64_t>(run.parts.size());
  return {.part = run.parts[static_cast<std::size_t>(offset % turns)], .position = run.first_round + offset / turns};
}

void AlternatingStage::load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const {
  const SampleOfPart place = place_of(position);
  part(place.part).load(seed_of_part(seed, place.part), epoch, place.position, destination);
}

void AlternatingStage::expect(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const {
  const SampleOfPart place = place_of(position);
  part(place.part).expect(seed_of_part(seed, place.part), epoch, place.position);
}

void AlternatingStage::load_targets(std::uint64_t seed, std::int64_t epoch, std::int64_t position,
                                    std::span<float> targets) const {
  const SampleOfPart place = place_of(position);
  part(place.part).load_targets(seed_of_part(seed, place.part), epoch, place.position, targets);
}

SampleOrigin AlternatingStage::origin(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const {
  const SampleOfPart place = place_of(position);
  return named_origin(place.part, seed, epoch, place.position).value_or(SampleOrigin{this, position});
}

PositionSet AlternatingStage::reach(const PositionSet& positions, std::size_t parent) const {
  std::vector<PositionSet::Range> reached;
  for (const PositionSet::Range& range : positions.ranges()) {
    for (const Run& run : runs_) {
      const auto turns = static_cast<std::int64_t>(run.parts.size());
      const auto turn = std::ranges::find(run.parts, parent) - run.parts.begin();
      if (turn == turns) continue;
      // The first round whose sample of this part is at `position` or later.
      // Turn t of round r stands at begin + r * turns + t, solved for r and rounded up.
      const auto round_from = [&](std::int64_t position) {
        return std::clamp<std::int64_t>((position - run.begin - turn + turns - 1) / turns, 0, run.rounds);
      };
      const std::int64_t begin = range.begin <= run.begin ? 0 : round_from(range.begin);
      const std::int64_t end = range.end <= run.begin ? 0 : round_from(range.end);
      reached.push_back({run.first_round + begin, run.first_round + end});
    }
  }
  return PositionSet(std::move(reached));
}

// One run for each part, of one turn.
ConcatenateStage::ConcatenateStage(const Parts& parts)
    : AlternatingStage("concatenate", parts, [&] {
        std::vector<Run> runs;
        std::int64_t begin = 0;
        for (std::size_t part = 0; part < parts.size(); ++part) {
          runs.push_back({.begin = begin, .rounds = parts[part]->size(), .parts = {part}});
          begin += parts[part]->size();
        }
        return runs;
      }()) {}

InterleaveStage::InterleaveStage(const Parts& parts)
    : AlternatingStage("interleave", parts, [&] {
        // A round takes one sample of each part that has any left, so a part ends after as many rounds as it has
        // samples.
        std::vector<std::int64_t> ends;
        for (const auto& part : parts) ends.push_back(part->size());
        std::ranges::sort(ends);
        std::vector<Run> runs;
        std::int64_t begin = 0;
        std::int64_t first_round = 0;
        // Between two sizes, the same parts have samples left.
        for (const std::int64_t end : ends) {
          // Two parts of one size end in the same round. Parts without samples are in no run.
          if (end == first_round) continue;
          Run run{.begin = begin, .rounds = end - first_round, .first_round = first_round};
          for (std::size_t part = 0; part < parts.size(); ++part) {
            if (parts[part]->size() >= end) run.parts.push_back(part);
          }
          begin += run.rounds * static_cast<std::int64_t>(run.parts.size());
          first_round = end;
          runs.push_back(std::move(run));
        }
        return runs;
      }()) {}

// Without parts, either of the first two arguments throws, whichever is computed first.
ZipStage::ZipStage(Parts parts) : JoinedStage(layouts_side_by_side(parts), first_part("zip", parts).size(), parts) {}

void ZipStage::load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const {
  std::size_t input = 0;
  std::size_t target = 0;
  // Words that belong to no element must not hold what another sample left there: samples are compared by digest.
  std::ranges::fill(destination.features, 0.0F);
  std::ranges::fill(destination.targets, 0.0F);
  for (std::size_t index = 0; index < this->parts(); ++index) {
    // Arrays have other places in the joined row than in that of their part, so they are copied one by one.
    const SampleLayouts& of_part = part(index).layouts();
    std::vector<float> inputs(of_part.inputs.words());
    std::vector<float> targets(of_part.targets.words());
    part(index).load(seed_of_part(seed, index), epoch, position, {.features = inputs, .targets = targets});
    input = copy_arrays(of_part.inputs, inputs, layouts().inputs, destination.features, input);
    target = copy_arrays(of_part.targets, targets, layouts().targets, destination.targets, target);
  }
}

// The first part that has a name for its sample: a picture says more than the number of its label.
SampleOrigin ZipStage::origin(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const {
  for (std::size_t index = 0; index < this->parts(); ++index) {
    if (const auto named = named_origin(index, seed, epoch, position)) return *named;
  }
  return {this, position};
}

void ZipStage::expect(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const {
  for (std::size_t index = 0; index < this->parts(); ++index) {
    part(index).expect(seed_of_part(seed, index), epoch, position);
  }
}

}  // namespace holdfast
