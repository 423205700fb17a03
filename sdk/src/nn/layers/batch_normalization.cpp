#include "holdfast/nn/batch_normalization.h"

#include <cmath>

#include "holdfast/base/error.h"
#include "holdfast/nn/layer_builder.h"
#include "nn/graph/config.h"
#include "nn/graph/kernel.h"
#include "nn/operations/checks.h"
#include "nn/operations/operations.h"

namespace holdfast {

BatchNormalization::BatchNormalization(const BatchNormalizationOptions& options)
    : LayerOf(options.name), momentum_(options.momentum), epsilon_(options.epsilon) {
  // Both comparisons are written so that they refuse a NaN.
  if (!(momentum_ >= 0 && momentum_ <= 1)) {
    throw Error(ErrorCode::invalid_argument,
                "BatchNormalization needs a momentum from 0 to 1, not " + std::to_string(momentum_));
  }
  if (!(epsilon_ > 0 && std::isfinite(epsilon_))) {
    throw Error(ErrorCode::invalid_argument,
                "BatchNormalization needs a finite epsilon above 0, not " + std::to_string(epsilon_));
  }
}

std::vector<Value> BatchNormalization::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  const Value& input = only_input(inputs);
  const std::int64_t channels = last_extent(input.shape());
  const Fans fans = {.in = channels, .out = channels};
  // Training and inference must ask for the same weights, so the layer asks before it looks which of them is built.
  const Value gamma = builder.parameter("gamma", {channels}, Initializer::ones(), fans);
  const Value beta = builder.parameter("beta", {channels}, Initializer::zeros(), fans);
  const Value mean = builder.buffer("moving_mean", {channels}, Initializer::zeros(), fans);
  const Value variance = builder.buffer("moving_variance", {channels}, Initializer::ones(), fans);
  // In inference, the output of a sample must not depend on the others of its batch. So the averages take the place of
  // statistics.
  if (!builder.is_training()) return {batch_normalization(input, gamma, beta, epsilon_, mean, variance)};
  // A shard is normalized with statistics of its own, and the averages follow the whole batch. docs/decisions/models.md
  const NormalizedBatch normalized = batch_normalization(input, gamma, beta, epsilon_);
  builder.follow_batch(normalized.contributions, {mean, variance}, momentum_);
  return {normalized.output};
}

void BatchNormalization::write_config(ConfigWriter& config) const {
  config.number("momentum", momentum_);
  config.number("epsilon", epsilon_);
}

std::shared_ptr<const Layer> BatchNormalization::from_config(const std::string& name, ConfigReader& config) {
  const float momentum = config.number("momentum");
  const float epsilon = config.number("epsilon");
  return std::make_shared<const BatchNormalization>(
      BatchNormalizationOptions{.momentum = momentum, .epsilon = epsilon, .name = name});
}

}  // namespace holdfast
