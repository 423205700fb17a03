#include "holdfast/nn/activation_layer.h"

#include "nn/graph/config.h"
#include "nn/operations/checks.h"
#include "nn/operations/operations.h"

namespace holdfast {

ActivationLayer::ActivationLayer(Activation activation, const ActivationLayerOptions& options)
    : LayerOf(options.name), activation_(activation) {}

std::vector<Value> ActivationLayer::build(LayerBuilder&, std::span<const Value> inputs) const {
  return {holdfast::activation(only_input(inputs), activation_)};
}

void ActivationLayer::write_config(ConfigWriter& config) const {
  config.text("activation", holdfast::name(activation_));
}

std::shared_ptr<const Layer> ActivationLayer::from_config(const std::string& name, ConfigReader& config) {
  const Activation activation = activation_from_name(config.text("activation"));
  return std::make_shared<const ActivationLayer>(activation, ActivationLayerOptions{.name = name});
}

}  // namespace holdfast
