#pragma once

// Keeps the largest element of each window, per channel. Ties: the gradient goes to the first in row-major order.
// Input [height, width, channels].

#include <memory>
#include <optional>

#include "holdfast/compute/padding.h"
#include "holdfast/nn/layer.h"

namespace holdfast {

class ConfigReader;

struct MaxPooling2DOptions {
  std::optional<Extent2D> strides = {};  // those of the window where not given
  Padding padding = Padding::valid;
  std::string name = {};
};

class MaxPooling2D final : public Layer {
 public:
  // Throws Error{invalid_argument} unless all numbers are in [1, kMaximumExtent].
  explicit MaxPooling2D(Extent2D pool_size, const MaxPooling2DOptions& options = {});
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "MaxPooling2D"; }
  Shape output_shape(const Shape& input) const override;
  // The largest of probabilities that add up to 1 no longer do.
  std::optional<Activation> output_activation(std::optional<Activation> input) const override {
    return input == Activation::softmax ? std::nullopt : input;
  }
  void add_stages(ModelStageBuilder& builder) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  Extent2D pool_size_;
  Extent2D strides_;
  Padding padding_;
};

}  // namespace holdfast
