#include "holdfast/nn/activation_layer.h"

#include "nn/config.h"
#include "nn/model_stage_builder.h"

namespace holdfast {

ActivationLayer::ActivationLayer(Activation activation, const ActivationLayerOptions& options)
    : Layer(options.name), activation_(activation) {}

Shape ActivationLayer::output_shape(const Shape& input) const {
  return input;
}

void ActivationLayer::add_stages(ModelStageBuilder& builder) const {
  builder.add_activation(activation_);
}

void ActivationLayer::write_config(ConfigWriter& config) const {
  config.text("activation", holdfast::name(activation_));
}

std::shared_ptr<const Layer> ActivationLayer::from_config(const std::string& name, ConfigReader& config) {
  const Activation activation = activation_from_name(config.text("activation"));
  return std::make_shared<const ActivationLayer>(activation, ActivationLayerOptions{.name = name});
}

}  // namespace holdfast
