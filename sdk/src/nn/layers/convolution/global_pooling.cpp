#include "holdfast/nn/global_pooling.h"

#include "holdfast/base/error.h"
#include "holdfast/nn/functions.h"
#include "nn/graph/config.h"
#include "nn/operations/checks.h"

namespace holdfast {

// All axes but the last one, the channels.
static AxisList positions_of(const Value& input) {
  if (input.shape().rank() < 2) {
    throw Error(
        ErrorCode::invalid_argument,
        "it needs an input with positions and channels, [..., channels]; leave the layer out where there are no "
        "positions");
  }
  AxisList axes;
  for (std::size_t axis = 0; axis + 1 < input.shape().rank(); ++axis) axes.push_back(static_cast<std::int64_t>(axis));
  return axes;
}

static ReducedAxes reduced_axes(bool keeps_axes) {
  return keeps_axes ? ReducedAxes::keep : ReducedAxes::remove;
}

GlobalAveragePooling::GlobalAveragePooling(const GlobalPoolingOptions& options)
    : LayerOf(options.name), keeps_axes_(options.keeps_axes) {}

std::vector<Value> GlobalAveragePooling::build(LayerBuilder&, std::span<const Value> inputs) const {
  const Value& input = only_input(inputs);
  // A reduction and not a pooling with one window, since it takes any number of axes.
  return {mean(input, positions_of(input), reduced_axes(keeps_axes_))};
}

void GlobalAveragePooling::write_config(ConfigWriter& config) const {
  // Files name the option as Keras does.
  config.boolean("keepdims", keeps_axes_);
}

std::shared_ptr<const Layer> GlobalAveragePooling::from_config(const std::string& name, ConfigReader& config) {
  return std::make_shared<const GlobalAveragePooling>(
      GlobalPoolingOptions{.keeps_axes = config.boolean("keepdims"), .name = name});
}

GlobalMaxPooling::GlobalMaxPooling(const GlobalPoolingOptions& options)
    : LayerOf(options.name), keeps_axes_(options.keeps_axes) {}

std::vector<Value> GlobalMaxPooling::build(LayerBuilder&, std::span<const Value> inputs) const {
  const Value& input = only_input(inputs);
  // Equal largest elements share the gradient. So a constant image does not favour its first position.
  return {largest(input, positions_of(input), reduced_axes(keeps_axes_))};
}

void GlobalMaxPooling::write_config(ConfigWriter& config) const {
  config.boolean("keepdims", keeps_axes_);
}

std::shared_ptr<const Layer> GlobalMaxPooling::from_config(const std::string& name, ConfigReader& config) {
  return std::make_shared<const GlobalMaxPooling>(
      GlobalPoolingOptions{.keeps_axes = config.boolean("keepdims"), .name = name});
}

}  // namespace holdfast
