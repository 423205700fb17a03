#include "data/map_stage.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

Random draws_of(const Stage& stage, std::uint64_t seed, std::int64_t epoch, std::int64_t position) {
  return Random(seed, Purpose::augmentation, draw_major(stage, epoch), static_cast<std::uint64_t>(position));
}

template <typename Function>
void check_function(const Function& function) {
  if (!function) throw Error(ErrorCode::invalid_argument, "map() was given an empty function");
}

}  // namespace

MapStage::MapStage(std::shared_ptr<const Stage> before, Dataset::MapFunction function, std::string name)
    : ChainedStage(before, before->size()), function_(std::move(function)), name_(std::move(name)) {
  check_function(function_);
}

void MapStage::load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const {
  before().load(seed, epoch, position, destination);
  Random random = draws_of(*this, seed, epoch, position);
  function_(destination, random);
}

void MapStage::describe(nlohmann::ordered_json& stages) const {
  before().describe(stages);
  stages.push_back({{"kind", "map"}, {"name", name_}});
}

FeatureMapStage::FeatureMapStage(std::shared_ptr<const Stage> before, Shape feature_shape,
                                 Dataset::FeatureFunction function, std::string name)
    : ChainedStage(std::move(before), std::move(feature_shape)),
      function_(std::move(function)),
      name_(std::move(name)) {
  check_function(function_);
}

void FeatureMapStage::load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const {
  std::vector<float> features(static_cast<std::size_t>(before().feature_shape().element_count()));
  before().load(seed, epoch, position, {.features = features, .targets = destination.targets});
  Random random = draws_of(*this, seed, epoch, position);
  function_(features, destination.features, random);
}

void FeatureMapStage::describe(nlohmann::ordered_json& stages) const {
  before().describe(stages);
  stages.push_back({{"kind", "map"}, {"name", name_}, {"features", feature_shape().extents()}});
}

}  // namespace holdfast
