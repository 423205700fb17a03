#include "holdfast/nn/conv2d.h"

#include "nn/layers/convolution/convolution_settings.h"

namespace holdfast {

Conv2D::Conv2D(const ConvolutionSettings& settings, const std::string& name) : LayerOf(name), settings_(settings) {
  check_convolution("Conv2D", settings);
}

Conv2D::Conv2D(std::int64_t filters, Extent2D kernel_size, const Conv2DOptions& options)
    : Conv2D(settings_of(filters, kernel_size, options), options.name) {}

std::vector<Value> Conv2D::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  return build_convolution(builder, inputs, settings_);
}

void Conv2D::write_config(ConfigWriter& config) const {
  write_convolution(config, settings_);
}

std::shared_ptr<const Layer> Conv2D::from_config(const std::string& name, ConfigReader& config) {
  // std::make_shared() cannot call the private constructor.
  return std::shared_ptr<const Layer>(new Conv2D(read_convolution(config, 2), name));
}

}  // namespace holdfast
