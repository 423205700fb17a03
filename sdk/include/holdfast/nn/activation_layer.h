#pragma once

// An activation function as a layer of its own, for models in which the layer before has no such
// option. Shapes stay as they are; the layer has no weights. Functions with numbers of their own are
// ActivationFunction::elu(0.5F) and its like. Those that are layers in Keras are in advanced_activations.h.
//
//   ActivationLayer{ActivationFunction::elu(0.5F)}
//
//   Sequential model{Input{28, 28, 1}, Flatten{}, Dense{128}, BatchNormalization{}, ActivationLayer{Activation::relu}};

#include <memory>

#include "holdfast/nn/activation_function.h"
#include "holdfast/nn/layer.h"

namespace holdfast {

class ConfigReader;

// An empty name lets the model choose one.
struct ActivationLayerOptions {
  std::string name = {};
};

class ActivationLayer final : public LayerOf<ActivationLayer> {
 public:
  // Throws Error{invalid_argument} for a name that is not allowed (layer.h).
  explicit ActivationLayer(const ActivationFunction& activation, const ActivationLayerOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // What Layer promises.
  std::string_view kind() const override { return "Activation"; }
  // A linear activation leaves the numbers as they are.
  std::optional<Activation> output_activation(std::optional<Activation> input) const override {
    return activation_ == Activation::linear ? input : activation_.basic();
  }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  ActivationFunction activation_;
};

}  // namespace holdfast
