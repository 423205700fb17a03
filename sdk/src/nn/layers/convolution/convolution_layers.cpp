#include "holdfast/nn/convolution_layers.h"

#include "nn/layers/convolution/convolution_settings.h"

namespace holdfast {

// Readers of files call this constructor, and so does the public one. So options are checked in one place.
Conv1D::Conv1D(const ConvolutionSettings& settings, const std::string& name) : LayerOf(name), settings_(settings) {
  check_convolution("Conv1D", settings);
}

Conv1D::Conv1D(std::int64_t filters, std::int64_t kernel_size, const Conv1DOptions& options)
    : Conv1D(settings_of(filters, kernel_size, options), options.name) {}

std::vector<Value> Conv1D::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  return build_convolution(builder, inputs, settings_);
}

void Conv1D::write_config(ConfigWriter& config) const {
  write_convolution(config, settings_);
}

std::shared_ptr<const Layer> Conv1D::from_config(const std::string& name, ConfigReader& config) {
  // std::make_shared() cannot call the private constructor.
  return std::shared_ptr<const Layer>(new Conv1D(read_convolution(config, 1), name));
}

Conv3D::Conv3D(const ConvolutionSettings& settings, const std::string& name) : LayerOf(name), settings_(settings) {
  check_convolution("Conv3D", settings);
}

Conv3D::Conv3D(std::int64_t filters, Extent3D kernel_size, const Conv3DOptions& options)
    : Conv3D(settings_of(filters, kernel_size, options), options.name) {}

std::vector<Value> Conv3D::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  return build_convolution(builder, inputs, settings_);
}

void Conv3D::write_config(ConfigWriter& config) const {
  write_convolution(config, settings_);
}

std::shared_ptr<const Layer> Conv3D::from_config(const std::string& name, ConfigReader& config) {
  return std::shared_ptr<const Layer>(new Conv3D(read_convolution(config, 3), name));
}

}  // namespace holdfast
