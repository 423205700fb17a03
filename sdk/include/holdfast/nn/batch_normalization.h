#pragma once

// Normalizes each channel, the last axis (Ioffe and Szegedy, "Batch Normalization", ICML 2015; so
// keras.layers.BatchNormalization):
//
//   output = (input - mean) / sqrt(variance + epsilon) * gamma + beta
//
// Parameters: gamma and beta, [channels], as far as the options ask for them; without them the factor is 1 and
// the offset is 0. Buffers: moving_mean and moving_variance, [channels].
//
// In training, mean and biased variance are those of the shard, over its samples and positions, so a
// shard needs nothing from others. The buffers follow the whole batch, with shards weighted by their
// samples:
//
//   moving = moving * momentum + (sum over shards of count * statistic) / (sum of counts) * (1 - momentum)
//
// So a shard needs several samples where the input has no positions: of one sample the mean is the sample itself, the
// output is beta whatever the input, and nothing before the layer learns. fit() throws Error{invalid_argument} where
// that would happen in every shard, and warns where it would in some: make the batch at least twice the shards.
//
// In inference the buffers are the statistics. Any input with at least one axis fits, and shapes stay
// as they are.
//
//   const Value y = BatchNormalization{{.has_scale = false}}(x);

#include <memory>
#include <string>

#include "holdfast/nn/constraint.h"
#include "holdfast/nn/initializer.h"
#include "holdfast/nn/layer.h"
#include "holdfast/nn/regularizer.h"

namespace holdfast {

class ConfigReader;

// The defaults of Keras.
struct BatchNormalizationOptions {
  float momentum = 0.99F;  // of the buffers, see above
  float epsilon = 1e-3F;
  bool has_scale = true;   // gamma
  bool has_center = true;  // beta
  // Where the arrays begin.
  Initializer beta_initializer = Initializer::zeros();
  Initializer gamma_initializer = Initializer::ones();
  Initializer moving_mean_initializer = Initializer::zeros();
  Initializer moving_variance_initializer = Initializer::ones();
  // Penalties on their size, and bounds, none by default; see regularizer.h and constraint.h.
  Regularizer beta_regularizer = {};
  Regularizer gamma_regularizer = {};
  Constraint beta_constraint = {};
  Constraint gamma_constraint = {};
  std::string name = {};
};

class BatchNormalization final : public LayerOf<BatchNormalization> {
 public:
  // Throws Error{invalid_argument} unless 0 <= momentum <= 1 and epsilon is positive and finite.
  explicit BatchNormalization(const BatchNormalizationOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // What Layer promises.
  std::string_view kind() const override { return "BatchNormalization"; }
  std::optional<Activation> output_activation(std::optional<Activation>) const override { return Activation::linear; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  BatchNormalizationOptions options_;
};

}  // namespace holdfast
