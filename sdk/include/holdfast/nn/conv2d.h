#pragma once

// A two-dimensional convolution (cross-correlation, as keras.layers.Conv2D): [height, width, channels]
// becomes [windows down, windows across, filters]. Parameters: kernel [kernel height, kernel width,
// channels, filters] and bias [filters].
//
//   Conv2D{6, 5, {.padding = Padding::same, .activation = Activation::relu}}

#include <memory>

#include "holdfast/compute/padding.h"
#include "holdfast/nn/activation_function.h"
#include "holdfast/nn/layer.h"

namespace holdfast {

class ConfigReader;

// The defaults of Keras.
struct Conv2DOptions {
  Extent2D strides = 1;
  Padding padding = Padding::valid;
  // Applied to the sums of products and bias.
  ActivationFunction activation = Activation::linear;
  bool use_bias = true;
  // Where the weights begin; see initializer.h.
  Initializer kernel_initializer = Initializer::glorot_uniform();
  Initializer bias_initializer = Initializer::zeros();
  std::string name = {};
};

class Conv2D final : public LayerOf<Conv2D> {
 public:
  // Throws Error{invalid_argument} unless all numbers are in [1, kMaximumExtent].
  Conv2D(std::int64_t filters, Extent2D kernel_size, const Conv2DOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // What Layer promises.
  std::string_view kind() const override { return "Conv2D"; }
  // The activation of the options, whatever the input.
  std::optional<Activation> output_activation(std::optional<Activation>) const override {
    return options_.activation.basic();
  }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  std::int64_t filters_;
  Extent2D kernel_size_;
  Conv2DOptions options_;
};

}  // namespace holdfast
