#include "holdfast/nn/unit_normalization.h"

#include "holdfast/base/error.h"
#include "nn/graph/config.h"
#include "nn/operations/checks.h"

namespace holdfast {

UnitNormalization::UnitNormalization(const UnitNormalizationOptions& options)
    : LayerOf(options.name), axes_(options.axes) {
  // Functions of values take an empty list for all axes, and files of Keras have no such thing.
  if (!axes_.empty()) return;
  throw Error(ErrorCode::invalid_argument, "UnitNormalization needs an axis at least; -1 is the last one");
}

std::vector<Value> UnitNormalization::build(LayerBuilder&, std::span<const Value> inputs) const {
  const Value& input = only_input(inputs);
  // A bound of the sum is one of the norm, and has a gradient where the sum is 0.
  constexpr float kLeastSquare = 1e-24F;
  const Value squares = sum(square(input), axes_, ReducedAxes::keep);
  return {input * reciprocal_root(maximum(squares, kLeastSquare))};
}

void UnitNormalization::write_config(ConfigWriter& config) const {
  // Files name the option as Keras does.
  config.integers("axis", axes_);
}

std::shared_ptr<const Layer> UnitNormalization::from_config(const std::string& name, ConfigReader& config) {
  return std::make_shared<const UnitNormalization>(
      UnitNormalizationOptions{.axes = config.integers("axis"), .name = name});
}

}  // namespace holdfast
