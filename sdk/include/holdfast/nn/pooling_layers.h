#pragma once

// Pooling of sequences [steps, channels] and volumes [depth, height, width, channels], as Keras's layers of the same
// names; max_pooling2d.h and average_pooling2d.h have that of images. Each window becomes one element per channel. The
// layers have no weights.
//
//   MaxPooling1D{2}                                                   // halves the steps: [100, 8] to [50, 8]
//   MaxPooling3D{2}                                                   // [16, 32, 32, 4] to [8, 16, 16, 4]
//   AveragePooling3D{{2, 3, 3}, {.strides = Extent3D{2, 1, 1}, .padding = Padding::same}}
//
// How many windows an axis has, and what becomes of elements that fill no window: holdfast/compute/padding.h. The
// layers of global_pooling.h have one window for all positions.
//
// Constructors throw Error{invalid_argument} unless all numbers are in [1, Layer::kMaximumExtent] and the padding is
// valid or same. A window larger than the input is refused when the layer is called.

#include <memory>
#include <optional>

#include "holdfast/compute/padding.h"
#include "holdfast/nn/functions.h"
#include "holdfast/nn/layer.h"

namespace holdfast {

class ConfigReader;

// Without strides, windows do not overlap. A stride above the size of the window leaves elements out.
template <class Extent>
struct PoolingLayerOptions {
  std::optional<Extent> strides = {};  // default: the size of the window
  // With same, windows at the ends of an axis reach beyond it. They look at the elements that are there.
  Padding padding = Padding::valid;
  std::string name = {};
};
using MaxPooling1DOptions = PoolingLayerOptions<std::int64_t>;      // for MaxPooling1D
using MaxPooling3DOptions = PoolingLayerOptions<Extent3D>;          // for MaxPooling3D
using AveragePooling1DOptions = PoolingLayerOptions<std::int64_t>;  // for AveragePooling1D
using AveragePooling3DOptions = PoolingLayerOptions<Extent3D>;      // for AveragePooling3D

// The largest element of each window. The first of equal ones in row-major order gets the gradient.
//
//   MaxPooling1D{3, {.strides = 2, .padding = Padding::same}}  // [101, 8] becomes [51, 8]
class MaxPooling1D final : public LayerOf<MaxPooling1D> {
 public:
  // Throws Error{invalid_argument} for a number out of [1, kMaximumExtent], and for causal padding.
  explicit MaxPooling1D(std::int64_t pool_size, const MaxPooling1DOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "MaxPooling1D"; }
  // The largest of several probabilities do not add up to 1 any more.
  std::optional<Activation> output_activation(std::optional<Activation> input) const override {
    return input == Activation::softmax ? std::nullopt : input;
  }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  MaxPooling1D(const PoolingWindows& windows, const std::string& name);

  PoolingWindows windows_;
};

// The same for volumes.
class MaxPooling3D final : public LayerOf<MaxPooling3D> {
 public:
  // Throws Error{invalid_argument} for a number out of [1, kMaximumExtent], and for causal padding.
  explicit MaxPooling3D(Extent3D pool_size, const MaxPooling3DOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "MaxPooling3D"; }
  // The largest of several probabilities do not add up to 1 any more.
  std::optional<Activation> output_activation(std::optional<Activation> input) const override {
    return input == Activation::softmax ? std::nullopt : input;
  }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  MaxPooling3D(const PoolingWindows& windows, const std::string& name);

  PoolingWindows windows_;
};

// The mean of the elements of each window. Padding counts neither as a value nor as an element. A moving mean keeps the
// number of steps, and the windows at both ends have fewer elements:
//
//   AveragePooling1D{3, {.strides = 1, .padding = Padding::same}}  // [100, 8] stays [100, 8]
class AveragePooling1D final : public LayerOf<AveragePooling1D> {
 public:
  // Throws Error{invalid_argument} for a number out of [1, kMaximumExtent], and for causal padding.
  explicit AveragePooling1D(std::int64_t pool_size, const AveragePooling1DOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "AveragePooling1D"; }
  // The mean of scores is a score, and the mean of probabilities a probability.
  std::optional<Activation> output_activation(std::optional<Activation> input) const override { return input; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  AveragePooling1D(const PoolingWindows& windows, const std::string& name);

  PoolingWindows windows_;
};

// The same for volumes.
class AveragePooling3D final : public LayerOf<AveragePooling3D> {
 public:
  // Throws Error{invalid_argument} for a number out of [1, kMaximumExtent], and for causal padding.
  explicit AveragePooling3D(Extent3D pool_size, const AveragePooling3DOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "AveragePooling3D"; }
  // The mean of scores is a score, and the mean of probabilities a probability.
  std::optional<Activation> output_activation(std::optional<Activation> input) const override { return input; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  AveragePooling3D(const PoolingWindows& windows, const std::string& name);

  PoolingWindows windows_;
};

}  // namespace holdfast
