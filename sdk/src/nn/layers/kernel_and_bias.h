#pragma once

// What Dense and the convolutions share: a kernel and perhaps a bias, in this order among the layer's parameters.

#include "holdfast/nn/layer_builder.h"
#include "holdfast/nn/layer_config.h"
#include "nn/graph/value_node.h"
#include "nn/layers/weight_limits.h"

namespace holdfast {

struct KernelAndBias {
  Value kernel;
  MaybeValue bias;
};

Value limited_bias(LayerBuilder& builder, const Shape& shape, const Fans& fans, const auto& options) {
  return limited(builder, builder.parameter("bias", shape, options.bias_initializer, fans), options.bias_regularizer,
                 options.bias_constraint);
}

Value limited_kernel(LayerBuilder& builder, const Shape& shape, const Fans& fans, const auto& options) {
  return limited(builder, builder.parameter("kernel", shape, options.kernel_initializer, fans),
                 options.kernel_regularizer, options.kernel_constraint);
}

// The bias has one element for each of the kernel's last axis. `options` has kernel_initializer, use_bias and
// bias_initializer, and the regularizers and constraints of both. The order of both parameters is that of files.
KernelAndBias kernel_and_bias(LayerBuilder& builder, const Shape& kernel, const Fans& fans, const auto& options) {
  const Value weights = limited_kernel(builder, kernel, fans, options);
  if (!options.use_bias) return {weights, std::nullopt};
  return {weights, limited_bias(builder, {kernel[kernel.rank() - 1]}, fans, options)};
}

void write_limits_of_kernel_and_bias(ConfigWriter& config, const auto& options) {
  write_limits(config, "kernel", options.kernel_regularizer, options.kernel_constraint);
  write_limits(config, "bias", options.bias_regularizer, options.bias_constraint);
}

}  // namespace holdfast
