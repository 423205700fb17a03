#pragma once

// output = (input - mean) / sqrt(variance + epsilon) * gamma + beta for each channel, the last axis. Parameters: gamma
// and beta, [channels]; buffers: moving_mean and moving_variance, [channels].
//
// In training mean and biased variance are those of the shard (over its samples and positions), so that a shard needs
// no word from others. The buffers follow the whole batch, shards weighted by their samples:
//   moving = moving * momentum + (sum over shards of count * statistic) / (sum of counts) * (1 - momentum)
// In inference the buffers are the statistics.

#include <memory>

#include "holdfast/nn/layer.h"

namespace holdfast {

class ConfigReader;

struct BatchNormalizationOptions {
  float momentum = 0.99F;
  float epsilon = 1e-3F;
  std::string name = {};
};

class BatchNormalization final : public Layer {
 public:
  // Throws Error{invalid_argument} unless 0 <= momentum <= 1 and epsilon is finite and above 0.
  explicit BatchNormalization(const BatchNormalizationOptions& options = {});
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "BatchNormalization"; }
  Shape output_shape(const Shape& input) const override;
  std::optional<Activation> output_activation(std::optional<Activation>) const override { return Activation::linear; }
  std::vector<WeightDescription> parameters(const Shape& input) const override;
  std::vector<WeightDescription> buffers(const Shape& input) const override;
  // Per channel count * mean, then per channel count * variance, then count: that of samples and positions.
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
