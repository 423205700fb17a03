#pragma once

// Normalizes each channel, the last axis (Ioffe and Szegedy, "Batch Normalization", ICML 2015; so
// keras.layers.BatchNormalization):
//
//   output = (input - mean) / sqrt(variance + epsilon) * gamma + beta
//
// Parameters: gamma and beta, [channels]. Buffers: moving_mean and moving_variance, [channels].
//
// In training, mean and biased variance are those of the shard, over its samples and positions, so a
// shard needs nothing from others. The buffers follow the whole batch, with shards weighted by their
// samples:
//
//   moving = moving * momentum + (sum over shards of count * statistic) / (sum of counts) * (1 - momentum)
//
// In inference the buffers are the statistics. Any input with at least one axis fits, and shapes stay
// as they are.

#include <memory>

#include "holdfast/nn/layer.h"

namespace holdfast {

class ConfigReader;

// The defaults of Keras.
struct BatchNormalizationOptions {
  float momentum = 0.99F;
  float epsilon = 1e-3F;
  std::string name = {};
};

class BatchNormalization final : public Layer {
 public:
  // Throws Error{invalid_argument} unless 0 <= momentum <= 1 and epsilon is positive and finite.
  explicit BatchNormalization(const BatchNormalizationOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // What Layer promises.
  std::string_view kind() const override { return "BatchNormalization"; }
  Shape output_shape(const Shape& input) const override;
  std::optional<Activation> output_activation(std::optional<Activation>) const override { return Activation::linear; }
  std::vector<WeightDescription> parameters(const Shape& input) const override;
  std::vector<WeightDescription> buffers(const Shape& input) const override;
  // Per channel count * mean, then per channel count * variance, then count, which is samples times
  // positions.
  std::size_t contribution_count(const Shape& input) const override;
  void update_buffers(std::span<const float> contributions, std::span<const std::span<float>> buffers) const override;
  void update_buffers_on(compute::DeviceKernels& device, const float* contributions,
                         std::span<const std::span<float>> buffers) const override;
  void add_stages(ModelStageBuilder& builder) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  float momentum_;
  float epsilon_;
};

}  // namespace holdfast
