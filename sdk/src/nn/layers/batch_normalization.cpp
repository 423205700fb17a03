#include "holdfast/nn/batch_normalization.h"

#include <fmt/format.h>

#include <cmath>

#include "holdfast/base/error.h"
#include "holdfast/nn/layer_builder.h"
#include "nn/graph/config.h"
#include "nn/graph/kernel.h"
#include "nn/layers/weight_limits.h"
#include "nn/operations/checks.h"
#include "nn/operations/operations.h"

namespace holdfast {

BatchNormalization::BatchNormalization(const BatchNormalizationOptions& options)
    : LayerOf(options.name), options_(options) {
  // Both comparisons are written so that they refuse a NaN.
  if (!(options.momentum >= 0 && options.momentum <= 1)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("BatchNormalization needs a momentum from 0 to 1, not {}", options.momentum));
  }
  if (!(options.epsilon > 0 && std::isfinite(options.epsilon))) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("BatchNormalization needs a finite epsilon above 0, not {}", options.epsilon));
  }
}

std::vector<Value> BatchNormalization::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  const Value& input = only_input(inputs);
  const std::int64_t channels = last_extent(input.shape());
  const Fans fans = {.in = channels, .out = channels};
  // Training and inference must ask for the same weights, so the layer asks before it looks which of them is built.
  MaybeValue gamma, beta;
  if (options_.has_scale) {
    gamma = limited(builder, builder.parameter("gamma", {channels}, options_.gamma_initializer, fans),
                    options_.gamma_regularizer, options_.gamma_constraint);
  }
  if (options_.has_center) {
    beta = limited(builder, builder.parameter("beta", {channels}, options_.beta_initializer, fans),
                   options_.beta_regularizer, options_.beta_constraint);
  }
  const Value mean = builder.buffer("moving_mean", {channels}, options_.moving_mean_initializer, fans);
  const Value variance = builder.buffer("moving_variance", {channels}, options_.moving_variance_initializer, fans);
  // In inference, the output of a sample must not depend on the others of its batch. So the averages take the place of
  // statistics.
  if (!builder.is_training() || builder.is_frozen()) {
    return {batch_normalization(input, gamma, beta, options_.epsilon, mean, variance)};
  }
  // A shard is normalized with statistics of its own, and the averages follow the whole batch. docs/decisions/models.md
  const NormalizedBatch normalized = batch_normalization(input, gamma, beta, options_.epsilon);
  builder.follow_batch(normalized.contributions, {mean, variance}, options_.momentum);
  return {normalized.output};
}

void BatchNormalization::write_config(ConfigWriter& config) const {
  config.number("momentum", options_.momentum);
  config.number("epsilon", options_.epsilon);
  // Files name the options as Keras does. Without them, the text is that of files from before there were any.
  if (!options_.has_scale) config.boolean("scale", false);
  if (!options_.has_center) config.boolean("center", false);
  write_options_of_gamma_and_beta(config, options_);
  write_initializer(config, "moving_mean", options_.moving_mean_initializer, Initializer::zeros());
  write_initializer(config, "moving_variance", options_.moving_variance_initializer, Initializer::ones());
}

std::shared_ptr<const Layer> BatchNormalization::from_config(const std::string& name, ConfigReader& config) {
  BatchNormalizationOptions options = {.momentum = config.number("momentum"), .name = name};
  options.epsilon = config.number("epsilon");
  if (config.has("scale")) options.has_scale = config.boolean("scale");
  if (config.has("center")) options.has_center = config.boolean("center");
  read_options_of_gamma_and_beta(config, options);
  options.moving_mean_initializer = read_initializer(config, "moving_mean", Initializer::zeros());
  options.moving_variance_initializer = read_initializer(config, "moving_variance", Initializer::ones());
  return std::make_shared<const BatchNormalization>(options);
}

}  // namespace holdfast
