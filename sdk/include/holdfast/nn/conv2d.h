#pragma once

// A two-dimensional convolution (cross-correlation, as keras.layers.Conv2D): [height, width, channels]
// becomes [windows down, windows across, filters]. Parameters: kernel [kernel height, kernel width,
// channels / groups, filters] and bias [filters].
//
//   Conv2D{6, 5, {.padding = Padding::same, .activation = Activation::relu}}
//
// How many windows an axis has, and where padding goes: holdfast/compute/padding.h. With Padding::valid, a window
// that is larger than the input is refused when the layer is called.

#include <memory>

#include "holdfast/nn/convolution_options.h"
#include "holdfast/nn/layer.h"

namespace holdfast {

class ConfigReader;

using Conv2DOptions = ConvolutionLayerOptions<Extent2D>;  // lists have a height and a width

class Conv2D final : public LayerOf<Conv2D> {
 public:
  // Throws Error{invalid_argument} unless all numbers are in [1, kMaximumExtent], groups divide filters, and strides or
  // dilation are 1. Channels that groups do not divide are refused when the layer is called.
  Conv2D(std::int64_t filters, Extent2D kernel_size, const Conv2DOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // What Layer promises.
  std::string_view kind() const override { return "Conv2D"; }
  // The activation of the options, whatever the input.
  std::optional<Activation> output_activation(std::optional<Activation>) const override {
    return settings_.activation.basic();
  }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  Conv2D(const ConvolutionSettings& settings, const std::string& name);

  ConvolutionSettings settings_;
};

}  // namespace holdfast
