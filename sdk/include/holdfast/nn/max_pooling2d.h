#pragma once

// The largest element of each window, per channel. If several are equal, the gradient goes to the first
// of them in row-major order. Maps [height, width, channels] to [windows down, windows across,
// channels] and has no weights.
//
//   MaxPooling2D{2}                                           // halves height and width
//   MaxPooling2D{3, {.strides = 2, .padding = Padding::same}}

#include <memory>
#include <optional>

#include "holdfast/compute/padding.h"
#include "holdfast/nn/functions.h"
#include "holdfast/nn/layer.h"

namespace holdfast {

class ConfigReader;

// Without strides, windows do not overlap.
struct MaxPooling2DOptions {
  std::optional<Extent2D> strides = {};  // default: the size of the window
  Padding padding = Padding::valid;
  std::string name = {};
};

class MaxPooling2D final : public LayerOf<MaxPooling2D> {
 public:
  // `pool_size` is the size of a window. Throws Error{invalid_argument} unless all numbers are in [1,
  // kMaximumExtent] and the padding is valid or same. With Padding::valid, a window that is larger than the
  // input is refused when the layer is called.
  explicit MaxPooling2D(Extent2D pool_size, const MaxPooling2DOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // What Layer promises.
  std::string_view kind() const override { return "MaxPooling2D"; }
  // The largest of several probabilities do not add up to 1 any more, so the outputs are not those of a
  // softmax.
  std::optional<Activation> output_activation(std::optional<Activation> input) const override {
    return input == Activation::softmax ? std::nullopt : input;
  }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  MaxPooling2D(const PoolingWindows& windows, const std::string& name);

  PoolingWindows windows_;
};

}  // namespace holdfast
