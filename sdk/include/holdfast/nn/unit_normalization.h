#pragma once

// Divides each sample by its norm along some axes, as keras.layers.UnitNormalization:
//
//   output = input * min(1 / sqrt(sum of input^2), 1e12)
//
// so that a sample of zeros stays zero. The layer has no weights. Training and inference do the same. The sum of
// products of two outputs is the cosine of the angle between their inputs. Over several axes, the norm is that of all
// their elements.
//
//   const Value directions = UnitNormalization{}(embeddings);

#include <memory>
#include <string>

#include "holdfast/nn/functions.h"
#include "holdfast/nn/layer.h"

namespace holdfast {

class ConfigReader;

// The default of Keras.
struct UnitNormalizationOptions {
  AxisList axes = {-1};  // of a sample, over which the norm is taken; axis 0 here is axis 1 of Keras
  std::string name = {};
};

class UnitNormalization final : public LayerOf<UnitNormalization> {
 public:
  // Throws Error{invalid_argument} for an empty list. Axes that do not fit are refused where the layer is called.
  explicit UnitNormalization(const UnitNormalizationOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "UnitNormalization"; }
  std::optional<Activation> output_activation(std::optional<Activation>) const override { return Activation::linear; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  AxisList axes_;
};

}  // namespace holdfast
