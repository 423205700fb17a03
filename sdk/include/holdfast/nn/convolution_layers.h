#pragma once

// Convolutions of sequences and volumes, as keras.layers.Conv1D and Conv3D; conv2d.h has that of images. Channels are
// last, and weights have the shapes in which Keras saves them.
//
//   Conv1D{32, 3}                                                     // [100, 8] to [98, 32]
//   Conv1D{32, 3, {.padding = Padding::causal, .dilation_rate = 4}}   // [steps, channels] to [steps, 32]
//   Conv3D{8, {3, 5, 5}, {.strides = 2}}                              // [16, 32, 32, 1] to [7, 14, 14, 8]
//
// How many windows an axis has, and where padding goes: holdfast/compute/padding.h. A kernel is not turned round before
// it is applied, so mathematicians call this a cross-correlation. A window that is larger than the input is refused
// when the layer is called.

#include <memory>

#include "holdfast/nn/conv2d.h"

namespace holdfast {

using Conv1DOptions = ConvolutionLayerOptions<std::int64_t>;  // for Conv1D
using Conv3DOptions = ConvolutionLayerOptions<Extent3D>;      // for Conv3D

// [steps, channels] becomes [windows, filters]. Kernel [kernel size, channels / groups, filters], bias [filters]. No
// other convolution takes Padding::causal.
class Conv1D final : public LayerOf<Conv1D> {
 public:
  // Throws Error{invalid_argument} for options that Conv2D refuses too.
  Conv1D(std::int64_t filters, std::int64_t kernel_size, const Conv1DOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "Conv1D"; }
  std::optional<Activation> output_activation(std::optional<Activation>) const override {
    return settings_.activation.basic();
  }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  Conv1D(const ConvolutionSettings& settings, const std::string& name);

  ConvolutionSettings settings_;
};

// [depth, height, width, channels] becomes [windows along each axis, filters]. Kernel [kernel depth, kernel height,
// kernel width, channels / groups, filters], bias [filters].
class Conv3D final : public LayerOf<Conv3D> {
 public:
  // Throws Error{invalid_argument} for options that Conv2D refuses too.
  Conv3D(std::int64_t filters, Extent3D kernel_size, const Conv3DOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "Conv3D"; }
  std::optional<Activation> output_activation(std::optional<Activation>) const override {
    return settings_.activation.basic();
  }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  Conv3D(const ConvolutionSettings& settings, const std::string& name);

  ConvolutionSettings settings_;
};

}  // namespace holdfast
