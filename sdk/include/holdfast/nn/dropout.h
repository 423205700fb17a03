#pragma once

// In training, sets each element to zero with probability `rate` and multiplies the others by 1 / (1 -
// rate) (Srivastava et al., JMLR 2014; so keras.layers.Dropout). In inference it does nothing. Which
// elements are dropped depends on the seed, the step, the place of the layer in the model and the place
// of the sample in the global batch. It does not depend on how the batch is cut into shards.
//
//   Sequential model{Input{784}, Dense{128, {.activation = Activation::relu}}, Dropout{0.5F}, Dense{10}};

#include <memory>

#include "holdfast/nn/layer.h"

namespace holdfast {

class ConfigReader;

// An empty name lets the model choose one.
struct DropoutOptions {
  std::string name = {};
};

class Dropout final : public LayerOf<Dropout> {
 public:
  // Throws Error{invalid_argument} unless 0 <= rate < 1.
  explicit Dropout(float rate, const DropoutOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // What Layer promises.
  std::string_view kind() const override { return "Dropout"; }
  std::optional<Activation> output_activation(std::optional<Activation> input) const override { return input; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  float rate_;
};

}  // namespace holdfast
