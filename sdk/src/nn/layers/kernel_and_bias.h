#pragma once

// What Dense and the convolutions share: a kernel and perhaps a bias, in this order among the layer's parameters.

#include "holdfast/nn/layer_builder.h"
#include "nn/graph/value_node.h"

namespace holdfast {

struct KernelAndBias {
  Value kernel;
  MaybeValue bias;
};

// The bias has one element for each of the kernel's last axis. `options` has kernel_initializer, use_bias and
// bias_initializer. The order of both parameters is that of files.
KernelAndBias kernel_and_bias(LayerBuilder& builder, const Shape& kernel, const Fans& fans, const auto& options) {
  const Value weights = builder.parameter("kernel", kernel, options.kernel_initializer, fans);
  if (!options.use_bias) return {weights, std::nullopt};
  const Shape channels = {kernel[kernel.rank() - 1]};
  return {weights, builder.parameter("bias", channels, options.bias_initializer, fans)};
}

}  // namespace holdfast
