#include "residual_network.h"

namespace {

using namespace holdfast;

Value conv_bn(const Value& x, std::int64_t filters, Extent2D kernel, Extent2D strides) {
  const Conv2D convolution{filters,
                           kernel,
                           {.strides = strides,
                            .padding = Padding::same,
                            .use_bias = false,
                            .kernel_initializer = Initializer::he_normal()}};
  return BatchNormalization{{.momentum = 0.9F, .epsilon = 1e-5F}}(convolution(x));
}

// Two convolutions, added to their input. Where the size changes, a convolution of 1 x 1 changes
// that of the input.
Value block(const Value& x, std::int64_t filters, Extent2D strides) {
  const bool changes_size = strides.height != 1 || x.shape()[2] != filters;
  const Value shortcut = changes_size ? conv_bn(x, filters, 1, strides) : x;
  const Value y = relu(conv_bn(x, filters, 3, strides));
  return relu(conv_bn(y, filters, 3, 1) + shortcut);
}

}  // namespace

holdfast::Model residual_network() {
  const Value image = input({28, 28, 1});
  Value x = relu(conv_bn(image, 8, 3, 2));
  x = block(x, 8, 1);
  x = block(x, 16, 2);
  x = block(x, 32, 2);
  return Model(image, Dense{10}(GlobalAveragePooling{}(x)));
}
