#pragma once

// Convolutions that take each channel by itself, as Keras's layers of the same names (Chollet, "Xception", 2017).
// Channels are last, and weights have the shapes in which Keras saves them. From 64 channels to 64, a kernel of 3 x 3
// of a Conv2D has 36,864 weights. Those of a separable convolution have 576 and 4,096, since patterns and the mixture
// of channels are learned apart.
//
//   DepthwiseConv2D{3, {.padding = Padding::same}}                        // as many channels as before
//   SeparableConv2D{64, 3, {.activation = Activation::relu}}              // depthwise, and then 1 x 1 to 64 filters
//   DepthwiseConv1D{5, {.padding = Padding::same, .depth_multiplier = 2}}
//
// Constructors throw Error{invalid_argument} unless all numbers are in [1, Layer::kMaximumExtent], strides or dilation
// are 1, and the padding is valid or same. A window that does not fit the input is refused when the layer is called.
// For causal padding, take a Conv1D with as many groups as channels: it computes the same. Without an option `name`,
// the model chooses one.

#include <memory>

#include "holdfast/nn/convolution_options.h"
#include "holdfast/nn/layer.h"

namespace holdfast {

class ConfigReader;

// Options of DepthwiseConv1D and DepthwiseConv2D, with Keras's names, meanings and defaults. `Extent` has a number for
// each spatial axis. A dilation above 1 goes with strides of 1 only.
template <class Extent>
struct DepthwiseConvolutionOptions {
  // Positions from one window to the next.
  Extent strides = 1;
  // How windows treat the ends of an axis; see holdfast/compute/padding.h.
  Padding padding = Padding::valid;
  // How many filters each channel has; those of a channel follow each other in the output.
  std::int64_t depth_multiplier = 1;
  // The distance of a window's elements, 1 if they are neighbours.
  Extent dilation_rate = 1;
  // Applied to the sums of products and bias.
  ActivationFunction activation = Activation::linear;
  bool use_bias = true;
  // The initial values of the weights; see initializer.h. The fans are those of Keras, the window times the channels
  // and the window times the multiplier. So the draws are smaller than the elements of one filter alone would give.
  Initializer depthwise_initializer = Initializer::glorot_uniform();
  Initializer bias_initializer = Initializer::zeros();
  // Penalties on their size, none by default; see regularizer.h.
  Regularizer depthwise_regularizer = {};
  Regularizer bias_regularizer = {};
  // Bounds, none by default; see constraint.h.
  Constraint depthwise_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
};

// Options of SeparableConv1D and SeparableConv2D. `Extent` has a number for each spatial axis.
template <class Extent>
struct SeparableConvolutionOptions {
  // These three are of the first convolution, as above. The second one looks at single positions.
  Extent strides = 1;
  Padding padding = Padding::valid;
  Extent dilation_rate = 1;
  // How many channels each channel becomes before they are mixed.
  std::int64_t depth_multiplier = 1;
  // Applied after the 1 x 1 convolution and the bias; nothing is applied between the two convolutions.
  ActivationFunction activation = Activation::linear;
  // The second convolution has it; the first has no bias.
  bool use_bias = true;
  // The initial values of the weights. The fans of the first are as above. Those of the second are channels *
  // multiplier and filters.
  Initializer depthwise_initializer = Initializer::glorot_uniform();
  Initializer pointwise_initializer = Initializer::glorot_uniform();
  Initializer bias_initializer = Initializer::zeros();
  // Penalties on their size, none by default; see regularizer.h.
  Regularizer depthwise_regularizer = {};
  Regularizer pointwise_regularizer = {};
  Regularizer bias_regularizer = {};
  // Bounds, none by default; see constraint.h.
  Constraint depthwise_constraint = {};
  Constraint pointwise_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
};

using DepthwiseConv1DOptions = DepthwiseConvolutionOptions<std::int64_t>;  // for DepthwiseConv1D
using DepthwiseConv2DOptions = DepthwiseConvolutionOptions<Extent2D>;      // for DepthwiseConv2D
using SeparableConv1DOptions = SeparableConvolutionOptions<std::int64_t>;  // for SeparableConv1D
using SeparableConv2DOptions = SeparableConvolutionOptions<Extent2D>;      // for SeparableConv2D

// For Holdfast's own use: what a layer keeps of its options. Lists have a number for each spatial axis.
struct DepthwiseSettings {
  std::vector<std::int64_t> kernel_size;  // of the window
  std::vector<std::int64_t> strides;      // of the window
  // At the ends of each axis: valid or same.
  Padding padding = Padding::valid;
  std::vector<std::int64_t> dilation_rate;             // of the elements of the kernel
  std::int64_t depth_multiplier = 1;                   // outputs of each channel
  ActivationFunction activation = Activation::linear;  // after the bias
  bool use_bias = true;
  Initializer depthwise_initializer = Initializer::glorot_uniform();
  Initializer bias_initializer = Initializer::zeros();
  Regularizer depthwise_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint depthwise_constraint = {};
  Constraint bias_constraint = {};
};
// The same of a separable convolution. The bias and the activation of `depthwise` are those of the whole layer.
struct SeparableSettings {
  std::int64_t filters = 1;     // channels of the output
  DepthwiseSettings depthwise;  // the part that treats each channel by itself
  Initializer pointwise_initializer = Initializer::glorot_uniform();
  Regularizer pointwise_regularizer = {};
  Constraint pointwise_constraint = {};
};

// Filters each channel of a sequence by itself: [steps, channels] becomes [windows, channels * multiplier]. Kernel
// [kernel size, channels, multiplier] and bias [channels * multiplier].
//
//   DepthwiseConv1D{5, {.padding = Padding::same, .depth_multiplier = 2}}  // [100, 8] becomes [100, 16]
class DepthwiseConv1D final : public LayerOf<DepthwiseConv1D> {
 public:
  // Throws Error{invalid_argument} for a number out of [1, kMaximumExtent], and for causal padding.
  explicit DepthwiseConv1D(std::int64_t kernel_size, const DepthwiseConv1DOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "DepthwiseConv1D"; }
  std::optional<Activation> output_activation(std::optional<Activation>) const override {
    return settings_.activation.basic();
  }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  DepthwiseConv1D(const DepthwiseSettings& settings, const std::string& name);

  DepthwiseSettings settings_;
};

// Filters each channel of an image by itself: [height, width, channels] becomes [windows down, windows across,
// channels * multiplier]. Kernel [kernel height, kernel width, channels, multiplier] and bias [channels * multiplier].
//
//   DepthwiseConv2D{3, {.strides = 2}}  // [28, 28, 16] becomes [13, 13, 16]
class DepthwiseConv2D final : public LayerOf<DepthwiseConv2D> {
 public:
  // Throws Error{invalid_argument} for a number out of [1, kMaximumExtent], and for causal padding.
  explicit DepthwiseConv2D(Extent2D kernel_size, const DepthwiseConv2DOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "DepthwiseConv2D"; }
  std::optional<Activation> output_activation(std::optional<Activation>) const override {
    return settings_.activation.basic();
  }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  DepthwiseConv2D(const DepthwiseSettings& settings, const std::string& name);

  DepthwiseSettings settings_;
};

// A DepthwiseConv1D whose channels are then mixed at each step: [steps, channels] becomes [windows, filters].
// Parameters: depthwise_kernel [kernel size, channels, multiplier], pointwise_kernel [1, channels * multiplier,
// filters] and bias [filters].
//
//   SeparableConv1D{32, 5}  // [100, 8] becomes [96, 32], with 40 + 256 + 32 weights
class SeparableConv1D final : public LayerOf<SeparableConv1D> {
 public:
  // Throws Error{invalid_argument} for a number out of [1, kMaximumExtent], and for causal padding.
  SeparableConv1D(std::int64_t filters, std::int64_t kernel_size, const SeparableConv1DOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "SeparableConv1D"; }
  std::optional<Activation> output_activation(std::optional<Activation>) const override {
    return settings_.depthwise.activation.basic();
  }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  SeparableConv1D(const SeparableSettings& settings, const std::string& name);

  SeparableSettings settings_;
};

// A DepthwiseConv2D whose channels are then mixed at each position: [height, width, channels] becomes [windows down,
// windows across, filters]. Parameters: depthwise_kernel [kernel height, kernel width, channels, multiplier],
// pointwise_kernel [1, 1, channels * multiplier, filters] and bias [filters].
//
//   SeparableConv2D{64, 3, {.padding = Padding::same}}  // [28, 28, 16] becomes [28, 28, 64]
class SeparableConv2D final : public LayerOf<SeparableConv2D> {
 public:
  // Throws Error{invalid_argument} for a number out of [1, kMaximumExtent], and for causal padding.
  SeparableConv2D(std::int64_t filters, Extent2D kernel_size, const SeparableConv2DOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "SeparableConv2D"; }
  std::optional<Activation> output_activation(std::optional<Activation>) const override {
    return settings_.depthwise.activation.basic();
  }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  SeparableConv2D(const SeparableSettings& settings, const std::string& name);

  SeparableSettings settings_;
};

}  // namespace holdfast
