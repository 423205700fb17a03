#pragma once

// Takes the mean of the elements of each window, per channel. Padding counts neither as value nor as element.
// Input [height, width, channels].

#include <memory>
#include <optional>

#include "holdfast/compute/padding.h"
#include "holdfast/nn/layer.h"

namespace holdfast {

class ConfigReader;

struct AveragePooling2DOptions {
  std::optional<Extent2D> strides = {};  // those of the window where not given
  Padding padding = Padding::valid;
  std::string name = {};
};

class AveragePooling2D final : public Layer {
 public:
  // Throws Error{invalid_argument} unless all numbers are in [1, kMaximumExtent].
  explicit AveragePooling2D(Extent2D pool_size, const AveragePooling2DOptions& options = {});
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "AveragePooling2D"; }
  Shape output_shape(const Shape& input) const override;
  // An average of scores is a score, and one of probabilities a probability.
  std::optional<Activation> output_activation(std::optional<Activation> input) const override { return input; }
  void add_stages(ModelStageBuilder& builder) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  Extent2D pool_size_;
  Extent2D strides_;
  Padding padding_;
};

}  // namespace holdfast
