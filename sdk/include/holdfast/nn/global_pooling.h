#pragma once

// The mean or the largest element of each channel over all positions: [..., channels] becomes [channels]. Keras has one
// class for each number of axes; here one class serves all. An input without positions, [channels], is refused when the
// layer is called.
//
//   Sequential model{Input{28, 28, 1}, Conv2D{16, 3}, GlobalAveragePooling{}, Dense{10}};

#include <memory>
#include <string>

#include "holdfast/nn/layer.h"

namespace holdfast {

class ConfigReader;

// Options of GlobalAveragePooling and GlobalMaxPooling.
struct GlobalPoolingOptions {
  bool keeps_axes = false;  // [height, width, channels] becomes [1, 1, channels]
  std::string name = {};
};

// The mean of each channel over all positions, [channels]. It leads from the last convolution of a network to its first
// dense layer, with fewer weights than Flatten would need there.
//
//   GlobalAveragePooling{{.keeps_axes = true}}  // [7, 7, 512] becomes [1, 1, 512]
class GlobalAveragePooling final : public LayerOf<GlobalAveragePooling> {
 public:
  explicit GlobalAveragePooling(const GlobalPoolingOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "GlobalAveragePooling"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  bool keeps_axes_;
};

// The largest element of each channel over all positions, [channels]: whether something is found anywhere. Equal
// largest elements share the gradient.
//
//   GlobalMaxPooling{}  // [7, 7, 512] becomes [512]
class GlobalMaxPooling final : public LayerOf<GlobalMaxPooling> {
 public:
  explicit GlobalMaxPooling(const GlobalPoolingOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "GlobalMaxPooling"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  bool keeps_axes_;
};

}  // namespace holdfast
