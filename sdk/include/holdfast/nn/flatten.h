#pragma once

// Makes all axes of a sample one axis, in row-major order: [height, width, channels] becomes [height *
// width * channels]. It has no weights, and usually stands between convolutions and a Dense layer:
//
//   Sequential model{Input{28, 28, 1}, Conv2D{16, 3}, Flatten{}, Dense{10}};   // 26 * 26 * 16 inputs of Dense

#include <memory>

#include "holdfast/nn/layer.h"

namespace holdfast {

class ConfigReader;

// An empty name lets the model choose one.
struct FlattenOptions {
  std::string name = {};
};

class Flatten final : public LayerOf<Flatten> {
 public:
  // Throws Error{invalid_argument} for a name that is not allowed (layer.h).
  explicit Flatten(const FlattenOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // What Layer promises.
  std::string_view kind() const override { return "Flatten"; }
  // The numbers stay as they are.
  std::optional<Activation> output_activation(std::optional<Activation> input) const override { return input; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;
};

}  // namespace holdfast
