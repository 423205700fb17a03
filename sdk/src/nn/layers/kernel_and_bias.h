#pragma once

// What Dense and the convolutions share: a kernel and perhaps a bias, in this order among the layer's parameters.

#include "holdfast/nn/layer_builder.h"
#include "holdfast/nn/layer_config.h"
#include "nn/graph/value_node.h"

namespace holdfast {

struct KernelAndBias {
  Value kernel;
  MaybeValue bias;
};

// The bias has one element for each of the kernel's last axis. `options` has kernel_initializer, use_bias and
// bias_initializer, and the regularizers of both. The order of both parameters is that of files.
KernelAndBias kernel_and_bias(LayerBuilder& builder, const Shape& kernel, const Fans& fans, const auto& options) {
  const Value weights = builder.parameter("kernel", kernel, options.kernel_initializer, fans);
  builder.regularize(weights, options.kernel_regularizer);
  if (!options.use_bias) return {weights, std::nullopt};
  const Shape channels = {kernel[kernel.rank() - 1]};
  const Value bias = builder.parameter("bias", channels, options.bias_initializer, fans);
  builder.regularize(bias, options.bias_regularizer);
  return {weights, bias};
}

// Both regularizers, written only where there are some: texts without them are those of before there were any.
inline void write_regularizers(ConfigWriter& config, const auto& options) {
  if (!options.kernel_regularizer.is_none()) config.text("kernel_regularizer", options.kernel_regularizer.name());
  if (!options.bias_regularizer.is_none()) config.text("bias_regularizer", options.bias_regularizer.name());
}

inline Regularizer read_regularizer(ConfigReader& config, std::string_view key) {
  return config.has(key) ? Regularizer::from_name(config.text(key)) : Regularizer();
}

}  // namespace holdfast
