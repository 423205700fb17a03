#pragma once

// Normalizes each position of each sample over its channels, the last axis (Ba, Kiros and Hinton, "Layer
// Normalization", 2016; so keras.layers.LayerNormalization):
//
//   output = (input - mean) / sqrt(variance + epsilon) * gamma + beta
//
// with the biased variance. Parameters: gamma and beta, [channels]. Training and inference do the same, and samples
// do not depend on each other. With several axes, which are the last ones, the mean is that of all their elements, and
// gamma and beta have one for each.
//
//   const Value y = LayerNormalization{{.epsilon = 1e-5F}}(x);

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/nn/constraint.h"
#include "holdfast/nn/initializer.h"
#include "holdfast/nn/layer.h"
#include "holdfast/nn/regularizer.h"

namespace holdfast {

class ConfigReader;

// The defaults of Keras.
struct LayerNormalizationOptions {
  // The last axes, in any order. Axis 0 is the first axis of a sample; a negative axis counts from the last one.
  std::vector<std::int64_t> axis = {-1};
  // Added to the variance. Positions whose channels are all equal become beta. PyTorch's default is 1e-5.
  float epsilon = 1e-3F;
  // Keras calls them scale and center. Without one, the model and its savepoints lack that array.
  bool has_scale = true;   // gamma
  bool has_center = true;  // beta
  // Where the arrays begin.
  Initializer beta_initializer = Initializer::zeros();
  Initializer gamma_initializer = Initializer::ones();
  // Penalties on their size, and bounds, none by default; see regularizer.h and constraint.h.
  Regularizer beta_regularizer = {};
  Regularizer gamma_regularizer = {};
  Constraint beta_constraint = {};
  Constraint gamma_constraint = {};
  std::string name = {};
};

class LayerNormalization final : public LayerOf<LayerNormalization> {
 public:
  // Throws Error{invalid_argument} unless epsilon is positive and finite, and without an axis. Axes that are not the
  // last ones of an input are refused where the layer is called.
  explicit LayerNormalization(const LayerNormalizationOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "LayerNormalization"; }
  std::optional<Activation> output_activation(std::optional<Activation>) const override { return Activation::linear; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  LayerNormalizationOptions options_;
};

// The default of Keras.
struct RMSNormalizationOptions {
  float epsilon = 1e-6F;  // added to the mean of the squares
  std::string name = {};
};

// The same without mean and beta (Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019):
//
//   output = input / sqrt(mean of input^2 + epsilon) * scale
//
// Parameter: scale, [channels], which begins with ones. The mean is that of the last axis.
class RMSNormalization final : public LayerOf<RMSNormalization> {
 public:
  // Throws Error{invalid_argument} unless epsilon is positive and finite.
  explicit RMSNormalization(const RMSNormalizationOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "RMSNormalization"; }
  std::optional<Activation> output_activation(std::optional<Activation>) const override { return Activation::linear; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  float epsilon_;
};

}  // namespace holdfast
