#pragma once

// Makes one axis of all axes of a sample, in row-major order.

#include <memory>

#include "holdfast/nn/layer.h"

namespace holdfast {

class ConfigReader;

struct FlattenOptions {
  std::string name = {};
};

class Flatten final : public Layer {
 public:
  explicit Flatten(const FlattenOptions& options = {});
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "Flatten"; }
  Shape output_shape(const Shape& input) const override;
  std::optional<Activation> output_activation(std::optional<Activation> input) const override { return input; }
  void add_stages(ModelStageBuilder& builder) const override;
  void write_config(ConfigWriter& config) const override;
};

}  // namespace holdfast
