#include "holdfast/nn/conv2d.h"

#include "nn/graph/config.h"
#include "nn/layers/kernel_and_bias.h"
#include "nn/operations/checks.h"
#include "nn/operations/operations.h"

namespace holdfast {

Conv2D::Conv2D(std::int64_t filters, Extent2D kernel_size, const Conv2DOptions& options)
    : LayerOf(options.name), filters_(filters), kernel_size_(kernel_size), options_(options) {
  check_extent("Conv2D", "filters", filters);
  check_extent("Conv2D", "kernel extents", kernel_size);
  check_extent("Conv2D", "strides", options.strides);
}

std::vector<Value> Conv2D::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  const Value& input = only_input(inputs);
  window_places(input.shape(), kernel_size_, options_.strides, options_.padding);
  const std::int64_t channels = input.shape()[2];
  // The kernel's shape comes first: it refuses extents whose products, the fans among them, do not fit.
  const Shape kernel = {kernel_size_.height, kernel_size_.width, channels, filters_};
  const std::int64_t window = kernel_size_.height * kernel_size_.width;
  const KernelAndBias weights =
      kernel_and_bias(builder, kernel, {.in = window * channels, .out = window * filters_}, options_);
  const Value output =
      convolution(input, weights.kernel, weights.bias, {.strides = options_.strides, .padding = options_.padding});
  return {options_.activation(output)};
}

void Conv2D::write_config(ConfigWriter& config) const {
  config.integer("filters", filters_);
  config.extent("kernel_size", kernel_size_);
  config.extent("strides", options_.strides);
  config.text("padding", holdfast::name(options_.padding));
  config.text("activation", options_.activation.name());
  config.boolean("use_bias", options_.use_bias);
  config.text("kernel_initializer", options_.kernel_initializer.name());
  config.text("bias_initializer", options_.bias_initializer.name());
}

std::shared_ptr<const Layer> Conv2D::from_config(const std::string& name, ConfigReader& config) {
  const Conv2DOptions options = {.strides = config.extent("strides"),
                                 .padding = padding_from_name(config.text("padding")),
                                 .activation = ActivationFunction::from_name(config.text("activation")),
                                 .use_bias = config.boolean("use_bias"),
                                 .kernel_initializer = Initializer::from_name(config.text("kernel_initializer")),
                                 .bias_initializer = Initializer::from_name(config.text("bias_initializer")),
                                 .name = name};
  const std::int64_t filters = config.integer("filters");
  return std::make_shared<const Conv2D>(filters, config.extent("kernel_size"), options);
}

}  // namespace holdfast
