#pragma once

// Pooling to a given number of positions, whatever the input has. Keras has one class for each number of axes; here one
// class serves 1 to 3 of them. Along an axis of `in` positions, element i of `out` is made of the positions
//
//   floor(i in / out)  to  ceil((i + 1) in / out) - 1
//
// as in Keras, so windows may overlap, and differ by one in size. Where they differ along an axis, each window of each
// axis is an operation of its own, so that an axis has at most kMostDifferentWindows of them then. The layers have no
// weights.
//
//   AdaptiveAveragePooling{{7, 7}}   // [height, width, channels] becomes [7, 7, channels]
//   AdaptiveMaxPooling{{4}}          // [steps, channels] becomes [4, channels]

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/nn/layer.h"

namespace holdfast {

class ConfigReader;

// Positions of the output along an axis where the number of any axis does not divide that of the input.
inline constexpr std::int64_t kMostDifferentWindows = 4096;

// An empty name lets the model choose one.
struct AdaptivePoolingOptions {
  std::string name = {};
};

// The mean of each window.
class AdaptiveAveragePooling final : public LayerOf<AdaptiveAveragePooling> {
 public:
  // Positions of the output along each axis. Throws Error{invalid_argument} unless there are 1 to 3 of them in
  // [1, Layer::kMaximumExtent]. An input of another rank, or of an extent that needs too many different windows, is
  // refused where the layer is called.
  explicit AdaptiveAveragePooling(std::vector<std::int64_t> output_size, const AdaptivePoolingOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "AdaptiveAveragePooling"; }
  // The mean of scores is a score, and the mean of probabilities a probability.
  std::optional<Activation> output_activation(std::optional<Activation> input) const override { return input; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  std::vector<std::int64_t> output_size_;
};

// The largest element of each window. Equal largest elements share the gradient where windows have different sizes.
class AdaptiveMaxPooling final : public LayerOf<AdaptiveMaxPooling> {
 public:
  // As that of AdaptiveAveragePooling.
  explicit AdaptiveMaxPooling(std::vector<std::int64_t> output_size, const AdaptivePoolingOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "AdaptiveMaxPooling"; }
  // The largest of several probabilities do not add up to 1 any more.
  std::optional<Activation> output_activation(std::optional<Activation> input) const override {
    return input == Activation::softmax ? std::nullopt : input;
  }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  std::vector<std::int64_t> output_size_;
};

}  // namespace holdfast
