#pragma once

// In training each element becomes zero with probability `rate` and is multiplied by 1 / (1 - rate) otherwise; in
// inference nothing happens. What is dropped depends on the seed, the step, the layer's place in the model and the
// sample's place in the global batch, not on how the batch is cut into shards.

#include <memory>

#include "holdfast/nn/layer.h"

namespace holdfast {

class ConfigReader;

struct DropoutOptions {
  std::string name = {};
};

class Dropout final : public Layer {
 public:
  // Throws Error{invalid_argument} unless 0 <= rate < 1.
  explicit Dropout(float rate, const DropoutOptions& options = {});
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "Dropout"; }
  Shape output_shape(const Shape& input) const override;
  std::optional<Activation> output_activation(std::optional<Activation> input) const override { return input; }
  void add_stages(ModelStageBuilder& builder) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  float rate_;
};

}  // namespace holdfast
