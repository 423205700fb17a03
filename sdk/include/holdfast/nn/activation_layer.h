#pragma once

// An activation function as a layer of its own, for where no layer before it has one.

#include <memory>

#include "holdfast/compute/activation.h"
#include "holdfast/nn/layer.h"

namespace holdfast {

class ConfigReader;

struct ActivationLayerOptions {
  std::string name = {};
};

class ActivationLayer final : public Layer {
 public:
  explicit ActivationLayer(Activation activation, const ActivationLayerOptions& options = {});
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "Activation"; }
  Shape output_shape(const Shape& input) const override;
  std::optional<Activation> output_activation(std::optional<Activation> input) const override {
    return activation_ == Activation::linear ? input : activation_;
  }
  void add_stages(ModelStageBuilder& builder) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  Activation activation_;
};

}  // namespace holdfast
