// A class weight is a sample weight, so losses, metrics and divisors need to know nothing of classes. Targets are read
// in the type that they have. What is not a class is refused: a wrong weight would train on without a message.
// docs/decisions/sample-weights.md

#include "data/stages/class_weight_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "holdfast/base/elements.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

// The last class that a whole number may name. It bounds the memory for counts where a target is not a class.
constexpr std::int64_t kLastClass = 1'000'000;

// Every whole number of 32 bits is exact in a double, and so is each f32.
std::vector<double> numbers_of(const RowLayout& layout, std::span<float> row) {
  const ArraySpec& target = layout.arrays()[0];
  const std::span<const std::byte> bytes = ArrayRow(layout, row).bytes(0);
  std::vector<double> numbers;
  with_element(target.dtype, [&]<typename Element>(Element) {
    for (std::size_t at = 0; at < bytes.size(); at += Element::kBytes) {
      numbers.push_back(static_cast<double>(Element::load(bytes.data() + at)));
    }
  });
  return numbers;
}

[[noreturn]] void refuse_target(const std::string& sample, const std::string& what) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("class weights need the class of each sample, and the target of {} {}; a class is a "
                          "whole number from 0 on or a one-hot row. For other targets give weights of samples to "
                          "from_tensors()",
                          sample, what));
}

// The class that the first target names. `name` returns that of the sample, for messages alone.
template <class Name>
std::int64_t class_of_target(const RowLayout& layout, std::span<float> row, const Name& name) {
  const std::vector<double> numbers = numbers_of(layout, row);
  if (numbers.size() == 1) {
    const double number = numbers.front();
    // Written so that a NaN is refused too.
    if (!(number >= 0 && number <= kLastClass) || std::floor(number) != number) {
      refuse_target(name(), fmt::format("is {}", number));
    }
    return static_cast<std::int64_t>(number);
  }
  // Exactly one 1 and else zeros. A row that mixup() or smoothing of labels made has
  // no class, and no weight could be right.
  const auto hot = std::ranges::find(numbers, 1.0);
  const bool is_one_hot =
      hot != numbers.end() && std::ranges::count(numbers, 0.0) == static_cast<std::ptrdiff_t>(numbers.size()) - 1;
  if (!is_one_hot) refuse_target(name(), fmt::format("is a row of {} numbers that is not one-hot", numbers.size()));
  return hot - numbers.begin();
}

// Returns the number of classes that a one-hot row has; nothing for class numbers.
std::optional<std::size_t> row_classes(const Stage& stage) {
  // A weight of the user is a last target, which is not counted.
  const std::size_t targets = stage.layouts().targets.arrays().size() - (stage.layouts().has_weights ? 1 : 0);
  if (targets != 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("class weights are for samples of one target, and these have {}; give weights of samples "
                            "to from_tensors()",
                            targets));
  }
  const std::int64_t elements = stage.target_shape().element_count();
  return elements == 1 ? std::nullopt : std::optional(static_cast<std::size_t>(elements));
}

}  // namespace

ClassWeightStage::ClassWeightStage(std::shared_ptr<const Stage> before, std::vector<float> weights)
    : ChainedStage(before, weighted_layouts(before->layouts()), before->size()), weights_(std::move(weights)) {
  for (std::size_t number = 0; number < weights_.size(); ++number) {
    if (weights_[number] >= 0 && std::isfinite(weights_[number])) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the weight of class {} is {}; weights are numbers from 0 on", number, weights_[number]));
  }
  const std::optional<std::size_t> classes = row_classes(this->before());
  if (!classes || *classes == weights_.size()) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("there are {} class weights for one-hot rows of {} classes; give one for each class",
                          weights_.size(), *classes));
}

// The row of the stage before begins this one: only the weight is added to its end.
std::span<float> ClassWeightStage::targets_before(std::span<float> targets) const {
  // Words that belong to no element must not hold what another sample left there: samples are compared by digest.
  std::ranges::fill(targets, 0.0F);
  return targets.first(before().target_words());
}

void ClassWeightStage::weigh(std::uint64_t seed, std::int64_t epoch, std::int64_t position,
                             std::span<float> targets) const {
  const RowLayout& layout = layouts().targets;
  const auto name = [&] { return name_of_sample(*this, seed, epoch, position); };
  // `targets` holds the row of the stage before, so the class is read from the layout that has the weight at its end.
  const std::int64_t number = class_of_target(layout, targets, name);
  if (number >= static_cast<std::int64_t>(weights_.size())) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} is of class {}, and there are weights for {} classes, numbered from 0; give one "
                            "weight for each class",
                            name(), number, weights_.size()));
  }
  const float weight = weights_[static_cast<std::size_t>(number)];
  const std::size_t last = layout.arrays().size() - 1;
  const auto count = static_cast<std::size_t>(layout.arrays()[last].shape.element_count());
  for (float& value : targets.subspan(layout.first_word(last), count)) {
    // Weights of the user and of classes are multiplied. With a weight for each position, all of them are.
    value = before().layouts().has_weights ? value * weight : weight;
  }
}

void ClassWeightStage::load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const {
  before().load(seed, epoch, position,
                {.features = destination.features, .targets = targets_before(destination.targets)});
  weigh(seed, epoch, position, destination.targets);
}

void ClassWeightStage::load_targets(std::uint64_t seed, std::int64_t epoch, std::int64_t position,
                                    std::span<float> targets) const {
  before().load_targets(seed, epoch, position, targets_before(targets));
  weigh(seed, epoch, position, targets);
}

void ClassWeightStage::describe(nlohmann::ordered_json& stages) const {
  before().describe(stages);
  stages.push_back({{"kind", "class_weights"}, {"weights", weights_}});
}

Dataset with_class_weights(const Dataset& data, const std::vector<float>& weights) {
  if (data.is_kept_on_device()) {
    throw Error(ErrorCode::invalid_argument,
                "class weights belong to samples that the host loads, and keep_on_device() copies the source as it is; "
                "leave out one of the two, or give weights of samples to from_tensors()");
  }
  return same_batches(data, std::make_shared<ClassWeightStage>(data.last_stage(), weights));
}

std::vector<float> balanced_class_weights(const Dataset& data) {
  const Stage& stage = *data.last_stage();
  std::vector<std::int64_t> samples_of(row_classes(stage).value_or(0));
  std::vector<float> row(stage.target_words());
  const std::int64_t all = data.size() - data.padding();
  for (std::int64_t position = 0; position < all; ++position) {
    stage.load_targets(0, 0, position, row);
    const auto name = [&] { return name_of_sample(stage, 0, 0, position); };
    const auto number = static_cast<std::size_t>(class_of_target(stage.layouts().targets, row, name));
    // Bounded by kLastClass, so a target that is not a class cannot take all memory.
    if (number >= samples_of.size()) samples_of.resize(number + 1);
    ++samples_of[number];
  }
  // Numbers without a sample are not classes here, else a gap in the numbers would make all weights smaller.
  const auto classes = std::ranges::count_if(samples_of, [](std::int64_t samples) { return samples > 0; });
  std::vector<float> weights;
  for (const std::int64_t samples : samples_of) {
    const double of_all_classes = static_cast<double>(classes) * static_cast<double>(samples);
    weights.push_back(samples == 0 ? 1.0F : static_cast<float>(static_cast<double>(all) / of_all_classes));
  }
  return weights;
}

}  // namespace holdfast
