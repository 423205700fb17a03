#include "holdfast/nn/activation_layer.h"

#include "nn/graph/config.h"
#include "nn/operations/checks.h"

namespace holdfast {

// The function checks its own numbers, so nothing is left to refuse here.
ActivationLayer::ActivationLayer(const ActivationFunction& activation, const ActivationLayerOptions& options)
    : LayerOf(options.name), activation_(activation) {}

std::vector<Value> ActivationLayer::build(LayerBuilder&, std::span<const Value> inputs) const {
  return {activation_(only_input(inputs))};
}

void ActivationLayer::write_config(ConfigWriter& config) const {
  // The name includes the arguments, so a function is one text.
  config.text("activation", activation_.name());
}

std::shared_ptr<const Layer> ActivationLayer::from_config(const std::string& name, ConfigReader& config) {
  const ActivationFunction activation = ActivationFunction::from_name(config.text("activation"));
  return std::make_shared<const ActivationLayer>(activation, ActivationLayerOptions{.name = name});
}

}  // namespace holdfast
