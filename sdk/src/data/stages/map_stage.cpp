// User functions run on any thread, in any order, and again after a recovery. So each call gets draws of its own, named
// by stage, epoch and position. A function that kept a generator of its own would give other samples each time. See
// docs/decisions/stages.md.

#include "data/stages/map_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <vector>

#include "data/stages/user_function.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"

namespace holdfast {
namespace {

Random draws_of(const Stage& stage, std::uint64_t seed, std::int64_t epoch, std::int64_t position) {
  return Random(seed, Purpose::augmentation, draw_major(stage, epoch), static_cast<std::uint64_t>(position));
}

// Whether both are of one sequence and have the same draw next: a draw moves a counter.
bool have_same_draws(const Random& a, const Random& b) {
  // Without padding, so that a comparison of bytes is one of values.
  static_assert(std::is_trivially_copyable_v<Random> && std::has_unique_object_representations_v<Random>);
  return std::memcmp(&a, &b, sizeof(Random)) == 0;
}

// One call of a function, with the draws that it gets. A function that promised to make none must not have made any:
// cache() would keep what epoch 0 drew.
struct MapCall {
  const Stage& stage;
  const std::string& name;
  bool may_draw;
  std::uint64_t seed;
  std::int64_t epoch;
  std::int64_t position;

  template <class Function>
  void run(const Function& function) const {
    Random random = draws_of(stage, seed, epoch, position);
    const Random first = random;
    call_for_sample([&] { return name_of_sample(stage, seed, epoch, position); }, "map()", name,
                    [&] { function(random); });
    if (may_draw || have_same_draws(random, first)) return;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the function of map() {} drew a number for sample {}, although its option says .draws = "
                            "false; leave out the option",
                            quoted_text(name), position));
  }
};

// Here and not at the first call, which may come hours later on another thread.
template <typename Function>
void check_function(const Function& function) {
  if (!function) throw Error(ErrorCode::invalid_argument, "map() was given an empty function");
}

// The functions of f32 samples see rows, which are their arrays only if there is one of f32.
void check_plain(const Stage& before) {
  if (before.layouts().are_plain()) return;
  throw Error(ErrorCode::invalid_argument,
              "this map() is for samples of one f32 array and one f32 target; take a function of SampleArrays for "
              "samples of other arrays");
}

// The sum of the weights divides the gradient, so one that is negative or not finite would spoil a whole batch.
void check_weights(const SampleLayouts& layouts, std::span<const float> targets, std::int64_t position) {
  if (!layouts.has_weights) return;
  const std::size_t last = layouts.targets.arrays().size() - 1;
  for (const float weight : targets.subspan(layouts.targets.first_word(last))) {
    if (weight >= 0 && std::isfinite(weight)) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("map() gave sample {} the weight {}; weights are numbers from 0 on", position, weight));
  }
}

}  // namespace

MapStage::MapStage(const std::shared_ptr<const Stage>& before, Dataset::MapFunction function, std::string name,
                   bool may_draw)
    : MappedStage(before, before->size(), std::move(name), may_draw), function_(std::move(function)) {
  check_function(function_);
  check_plain(this->before());
}

void MapStage::load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const {
  before().load(seed, epoch, position, destination);
  // The function changes the row where the batch has it: no copy, and the row is complete before the function sees it.
  const MapCall call{*this, name(), may_draw(), seed, epoch, position};
  call.run([&](Random& random) { function_(destination, random); });
}

void MapStage::describe(nlohmann::ordered_json& stages) const {
  before().describe(stages);
  stages.push_back({{"kind", "map"}, {"name", name()}});
}

ArrayMapStage::ArrayMapStage(const std::shared_ptr<const Stage>& before, Dataset::ArrayMapFunction function,
                             std::string name, bool may_draw)
    : MappedStage(before, before->size(), std::move(name), may_draw), function_(std::move(function)) {
  check_function(function_);
}

void ArrayMapStage::load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const {
  before().load(seed, epoch, position, destination);
  const SampleArrays sample{.inputs = {layouts().inputs, destination.features},
                            .targets = {layouts().targets, destination.targets}};
  const MapCall call{*this, name(), may_draw(), seed, epoch, position};
  call.run([&](Random& random) { function_(sample, random); });
  // The function may have written integers of 64 bits, like any source.
  check_integers(layouts(), destination, position);
  check_weights(layouts(), destination.targets, position);
}

void ArrayMapStage::describe(nlohmann::ordered_json& stages) const {
  before().describe(stages);
  stages.push_back({{"kind", "map"}, {"name", name()}});
}

InputMapStage::InputMapStage(std::shared_ptr<const Stage> before, std::vector<ArraySpec> inputs,
                             Dataset::InputMapFunction function, std::string name, bool may_draw)
    : MappedInputsStage(std::move(before), RowLayout(std::move(inputs)), std::move(name), may_draw),
      function_(std::move(function)) {
  check_function(function_);
  if (layouts().inputs.arrays().empty()) {
    throw Error(ErrorCode::invalid_argument, "map() was given no new inputs; name at least one array");
  }
}

void InputMapStage::load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const {
  const std::size_t words = before().feature_words();
  // Not zeroed, as a vector would be: the stage before writes all of it, and pictures are large.
  const auto memory = std::make_unique_for_overwrite<float[]>(words);
  const std::span<float> inputs(memory.get(), words);
  before().load(seed, epoch, position, {.features = inputs, .targets = destination.targets});
  // Words that belong to no element must not hold what another sample left there: samples are compared by digest.
  if (!layouts().inputs.is_plain()) std::ranges::fill(destination.features, 0.0F);
  // Two rows, because the arrays before and after may have other shapes. Targets went to their place at once.
  const MapCall call{*this, name(), may_draw(), seed, epoch, position};
  call.run([&](Random& random) {
    function_({before().layouts().inputs, inputs}, {layouts().inputs, destination.features}, random);
  });
  check_integers(layouts(), destination, position);
}

void InputMapStage::describe(nlohmann::ordered_json& stages) const {
  before().describe(stages);
  stages.push_back({{"kind", "map"}, {"name", name()}, {"inputs", json_of(layouts().inputs)}});
}

FeatureMapStage::FeatureMapStage(std::shared_ptr<const Stage> before, Shape feature_shape,
                                 Dataset::FeatureFunction function, std::string name, bool may_draw)
    : MappedInputsStage(std::move(before), RowLayout({{.name = {}, .shape = std::move(feature_shape)}}),
                        std::move(name), may_draw),
      function_(std::move(function)) {
  check_function(function_);
  check_plain(this->before());
}

void FeatureMapStage::load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const {
  // The stage before has rows of another size, so it cannot write to the destination.
  std::vector<float> features(before().feature_words());
  before().load(seed, epoch, position, {.features = features, .targets = destination.targets});
  const MapCall call{*this, name(), may_draw(), seed, epoch, position};
  call.run([&](Random& random) { function_(features, destination.features, random); });
}

void FeatureMapStage::describe(nlohmann::ordered_json& stages) const {
  before().describe(stages);
  stages.push_back({{"kind", "map"}, {"name", name()}, {"features", feature_shape().extents()}});
}

}  // namespace holdfast
