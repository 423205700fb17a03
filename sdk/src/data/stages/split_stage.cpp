// The parts of a split are drawn once, when the user writes it, and held as positions: a buffer that is
// shuffled during training would be state. By label, each class gets a number of samples next to its
// share, and the sum is exact. A split cannot follow shuffle() or repeat(), where a sample has no fixed
// place. See docs/decisions/stages.md.

#include "data/stages/split_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <queue>
#include <utility>

#include "data/stages/split_positions.h"
#include "holdfast/base/digest.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

using SamplePositions = SplitPositions::Positions;

// The targets that define a class, and the positions of its samples in rising order.
struct SampleClass {
  std::vector<float> targets;
  SamplePositions samples;
};

Error refused_split(const std::string& sentence) {
  return Error(ErrorCode::invalid_argument, sentence);
}

// Numbers as JSON prints them: the shortest digits that name a float.
std::string text_of_class(const SampleClass& of) {
  const auto number = [](float value) { return nlohmann::json(value).dump(); };
  if (of.targets.size() == 1) return fmt::format("class {}", number(of.targets[0]));
  std::string row;
  // A target may be an image, which would fill the log.
  constexpr std::size_t kShown = 10;
  for (std::size_t i = 0; i < std::min(of.targets.size(), kShown); ++i) {
    row += (i == 0 ? "" : ", ") + number(of.targets[i]);
  }
  return fmt::format("the class with the targets [{}{}]", row, of.targets.size() > kShown ? ", ..." : "");
}

// The only target whose classes are known without a rule of the application: integers, one array.
void require_integer_labels(const SampleLayouts& layouts) {
  const std::span<const ArraySpec> arrays = layouts.targets.arrays();
  if (arrays.size() - (layouts.has_weights ? 1 : 0) == 1 && arrays[0].dtype != DType::bf16) return;
  throw refused_split(
      "split() by label needs one target of f32 or of integers; split without by_label, or before other targets join");
}

// As floats, so that classes of all types are sorted and shown alike. Labels are below 2^24.
std::vector<float> integer_label(const RowLayout& layout, std::span<float> words) {
  const ArrayRow row(layout, words);
  std::vector<float> label;
  const auto append = [&](auto element) {
    for (const auto value : row.elements<decltype(element)>(0)) label.push_back(static_cast<float>(value));
  };
  switch (layout.arrays()[0].dtype) {
    case DType::f32:
      append(float{});
      break;
    case DType::i32:
      append(std::int32_t{});
      break;
    case DType::i64:
      append(std::int64_t{});
      break;
    case DType::u8:
      append(std::uint8_t{});
      break;
    case DType::u16:
      append(std::uint16_t{});
      break;
    default:
      append(bool{});
      break;
  }
  return label;
}

// Sorted by their targets, so the order of the samples does not matter.
std::vector<SampleClass> classes_of(const Stage& stage, std::uint64_t seed) {
  // An ordered map, because the order of the classes decides which draws each of them gets.
  std::map<std::vector<float>, SamplePositions> samples;
  // Targets of other types, and of samples with weights, are read by integer_label().
  const bool are_floats = stage.layouts().targets.is_plain();
  if (!are_floats) require_integer_labels(stage.layouts());
  std::vector<float> targets(stage.target_words());
  for (std::int64_t position = 0; position < stage.size(); ++position) {
    // Targets alone, where the stages allow it: reading all pictures for their labels would take as long as an epoch.
    stage.load_targets(seed, 0, position, targets);
    const std::vector<float> label = are_floats ? targets : integer_label(stage.layouts().targets, targets);
    // Above 2^24, several integers are one float.
    constexpr float kMost = 1 << 24;
    if (!are_floats && std::ranges::any_of(label, [](float value) { return std::abs(value) >= kMost; })) {
      throw refused_split(
          fmt::format("split() by label: sample {} has a label of 2^24 or more; number the classes from 0", position));
    }
    if (std::ranges::any_of(label, [](float value) { return std::isnan(value); })) {
      throw refused_split(
          fmt::format("split() by label: sample {} has a target that is NaN and belongs to no class; "
                      "leave it out, or split without by_label",
                      position));
    }
    samples[label].push_back(static_cast<std::uint32_t>(position));
  }
  std::vector<SampleClass> classes;
  // The map is sorted by targets, and positions rise within each class because they were found in their order.
  for (auto& [key, positions] : samples) classes.push_back({key, std::move(positions)});
  return classes;
}

std::string digest_of_classes(const std::vector<SampleClass>& classes, std::int64_t samples) {
  // By sample and not by class, so that samples which trade their labels change the digest.
  SamplePositions class_of(static_cast<std::size_t>(samples));
  for (std::size_t i = 0; i < classes.size(); ++i) {
    for (const std::uint32_t position : classes[i].samples) class_of[position] = static_cast<std::uint32_t>(i);
  }
  return digest(std::as_bytes(std::span(class_of))).hex();
}

void require_samples_of_each_class(const std::vector<SampleClass>& classes, std::int64_t samples,
                                   std::int64_t validation_samples) {
  for (const SampleClass& each : classes) {
    if (each.samples.size() >= 2) continue;
    throw refused_split(fmt::format(
        "split() by label needs two samples or more of each class, one for each part, and {} has one (sample {}); "
        "leave it out, add samples of it, or split without by_label{}",
        text_of_class(each), each.samples.front(),
        classes.size() > 1000 ? ", which is for classes, not for targets of a regression" : ""));
  }
  const auto count = static_cast<std::int64_t>(classes.size());
  // Under this condition allot() always finds the numbers: each class can have one sample in both parts.
  if (count <= validation_samples && count <= samples - validation_samples) return;
  throw refused_split(fmt::format(
      "split() by label puts at least one sample of each of the {} classes into both parts, which are to have {} and "
      "{} samples; use another fraction or count",
      count, samples - validation_samples, validation_samples));
}

// Returns how many samples of each class are for validation: its share of all, rounded down or up, at
// least one and not all. If the sum must change, the classes that are furthest from their share gain or
// lose a sample first.
std::vector<std::int64_t> allot(const std::vector<SampleClass>& classes, std::int64_t samples,
                                std::int64_t validation_samples) {
  // The product of two numbers of samples may have more than 63 bits.
  __extension__ using Wide = __int128;
  const auto size_of = [&](std::size_t i) { return static_cast<std::int64_t>(classes[i].samples.size()); };
  std::vector<std::int64_t> counts(classes.size());
  // How much a class has less than its share, in units of 1 / samples.
  const auto lack = [&](std::size_t i) {
    return Wide{validation_samples} * size_of(i) - Wide{counts[i]} * Wide{samples};
  };
  for (std::size_t i = 0; i < counts.size(); ++i) {
    // Rounded down first. What is left after all classes goes to those that lack most, one sample at a time.
    const auto share = static_cast<std::int64_t>(Wide{validation_samples} * size_of(i) / samples);
    counts[i] = std::clamp<std::int64_t>(share, 1, size_of(i) - 1);
  }
  std::int64_t left = validation_samples - std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  const std::int64_t change = left > 0 ? 1 : -1;
  // Among equals, the first class wins.
  using Candidate = std::pair<Wide, std::size_t>;
  const auto is_later = [](const Candidate& a, const Candidate& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  };
  // A queue, because there may be as many classes as half of the samples: a search
  // for each change would take their square.
  std::priority_queue<Candidate, std::vector<Candidate>, decltype(is_later)> candidates(is_later);
  const auto enter = [&](std::size_t i) {
    const std::int64_t next = counts[i] + change;
    // A class that is at its limit never comes back: all changes have one sign.
    if (next >= 1 && next <= size_of(i) - 1) candidates.emplace(change * lack(i), i);
  };
  if (left != 0) {
    for (std::size_t i = 0; i < counts.size(); ++i) enter(i);
  }
  for (; left != 0; left -= change) {
    HOLDFAST_ASSERT(!candidates.empty());
    const std::size_t i = candidates.top().second;
    candidates.pop();
    counts[i] += change;
    enter(i);
  }
  return counts;
}

void check_split(const Stage& before, std::int64_t validation_samples) {
  if (const char* mixing = mixing_stage(before)) {
    throw refused_split(
        fmt::format("split() stands after {}, which gives another order in each epoch, so that samples would change "
                    "sides; split first, then shuffle the parts: data.split(...).training.shuffle()",
                    mixing));
  }
  if (has_stage(before, StageKind::repeat)) {
    throw refused_split(
        "split() stands after repeat(), so that one sample would come into both parts; split first, then repeat the "
        "parts");
  }
  if (validation_samples < 1 || validation_samples >= before.size()) {
    throw refused_split(fmt::format(
        "split() of {} samples for validation out of {} would leave a part without samples; split off 1 or more, and "
        "fewer than there are",
        validation_samples, before.size()));
  }
  if (before.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("split() takes up to 4294967295 samples, not {}; use take() and skip() on so many", before.size()));
  }
}

}  // namespace

SplitStage::SplitStage(std::shared_ptr<const Stage> before, SplitDraw draw, std::string part,
                       std::vector<std::uint32_t> positions)
    : ChosenStage(std::move(before), std::move(positions)), draw_(std::move(draw)), part_(std::move(part)) {}

void SplitStage::describe(nlohmann::ordered_json& stages) const {
  before().describe(stages);
  nlohmann::ordered_json stage = {
      {"kind", "split"}, {"seed", draw_.seed}, {"validation", draw_.validation_samples}, {"part", part_}};
  if (!draw_.class_digest.empty()) stage["class_digest"] = draw_.class_digest;
  stages.push_back(std::move(stage));
}

DatasetSplit split(const std::shared_ptr<const Stage>& before, std::int64_t validation_samples,
                   const SplitOptions& options) {
  check_split(*before, validation_samples);
  // Both parts have it in their descriptions, so a resume with other parts is refused.
  SplitDraw draw{.seed = options.seed, .validation_samples = validation_samples};
  SplitPositions parts;
  // The parts have the same stage number, so a part that is split again with the same seed gets other
  // draws.
  const std::uint64_t major = static_cast<std::uint64_t>(before->number() + 1) << 48;
  const auto draws = [&](std::size_t minor) { return Random(options.seed, Purpose::split, major, minor); };
  if (options.by_label) {
    const std::vector<SampleClass> classes = classes_of(*before, options.seed);
    require_samples_of_each_class(classes, before->size(), validation_samples);
    const std::vector<std::int64_t> counts = allot(classes, before->size(), validation_samples);
    for (std::size_t i = 0; i < classes.size(); ++i) parts.add(classes[i].samples, counts[i], draws(i));
    draw.class_digest = digest_of_classes(classes, before->size());
  } else {
    // Without classes, all samples are one class, with the draws of the first.
    SamplePositions all(static_cast<std::size_t>(before->size()));
    std::iota(all.begin(), all.end(), 0U);
    parts.add(std::move(all), validation_samples, draws(0));
  }
  parts.sort();
  return {Dataset(std::make_shared<SplitStage>(before, draw, "training", std::move(parts.training))),
          Dataset(std::make_shared<SplitStage>(before, draw, "validation", std::move(parts.validation)))};
}

}  // namespace holdfast
