#pragma once

// The mean of the elements of each window, per channel. Padding counts neither as a value nor as an
// element. Maps [height, width, channels] to [windows down, windows across, channels] and has no
// weights.
//
//   AveragePooling2D{2}                                       // halves height and width
//   AveragePooling2D{{3, 2}, {.strides = Extent2D{1, 2}, .padding = Padding::same}}

#include <memory>
#include <optional>

#include "holdfast/compute/padding.h"
#include "holdfast/nn/functions.h"
#include "holdfast/nn/layer.h"

namespace holdfast {

class ConfigReader;

// Without strides, windows do not overlap.
struct AveragePooling2DOptions {
  std::optional<Extent2D> strides = {};  // default: the size of the window
  Padding padding = Padding::valid;
  std::string name = {};
};

class AveragePooling2D final : public LayerOf<AveragePooling2D> {
 public:
  // `pool_size` is the size of a window. Throws Error{invalid_argument} unless all numbers are in [1,
  // kMaximumExtent] and the padding is valid or same. With Padding::valid, a window that is larger than the
  // input is refused when the layer is called.
  explicit AveragePooling2D(Extent2D pool_size, const AveragePooling2DOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // What Layer promises.
  std::string_view kind() const override { return "AveragePooling2D"; }
  // The mean of scores is a score, and the mean of probabilities a probability.
  std::optional<Activation> output_activation(std::optional<Activation> input) const override { return input; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  AveragePooling2D(const PoolingWindows& windows, const std::string& name);

  PoolingWindows windows_;
};

}  // namespace holdfast
