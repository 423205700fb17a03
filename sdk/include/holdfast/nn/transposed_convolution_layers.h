#pragma once

// Convolutions the other way round, as Keras's layers of the same names ("deconvolution"): the gradient of a
// convolution with respect to its input, so that an input of the size of its output gives an output of the size of its
// input. Strides make images larger. Channels are last, and weights have the shapes in which Keras saves them.
//
//   Conv2DTranspose{16, 3, {.strides = 2, .padding = Padding::same}}   // doubles height and width
//
// Along each axis, with k = (kernel - 1) * dilation + 1, an extent becomes (TensorFlow's rules)
//
//   padding     output_padding not given              output_padding p
//   valid       (extent - 1) * stride + max(k, stride)  (extent - 1) * stride + k + p
//   same        extent * stride                         (extent - 1) * stride + k % 2 + p
//
// Constructors throw Error{invalid_argument} unless all numbers are in [1, Layer::kMaximumExtent], each output padding
// is below the stride of its axis, strides or dilation are 1, and the padding is valid or same.

#include <memory>
#include <optional>

#include "holdfast/nn/convolution_options.h"
#include "holdfast/nn/layer.h"

namespace holdfast {

class ConfigReader;

// Options of the three layers below. `Extent` has a number for each spatial axis.
template <class Extent>
struct TransposedConvolutionLayerOptions {
  // Positions of the output from one window to the next.
  Extent strides = 1;
  Padding padding = Padding::valid;
  // Settles which of several sizes the output has: a convolution with strides has one output for several inputs. Each
  // number is from 0 to below the stride of its axis.
  std::optional<Extent> output_padding = {};
  Extent dilation_rate = 1;
  // Applied to the sums of products and bias.
  ActivationFunction activation = Activation::linear;
  bool use_bias = true;
  // The initial values of the weights; see initializer.h. As in Keras, the fans are the window times the filters and
  // the window times the channels, in this order.
  Initializer kernel_initializer = Initializer::glorot_uniform();
  Initializer bias_initializer = Initializer::zeros();
  // Penalties on their size, none by default; see regularizer.h.
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  // Bounds, none by default; see constraint.h.
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
};

using Conv1DTransposeOptions = TransposedConvolutionLayerOptions<std::int64_t>;  // for Conv1DTranspose
using Conv2DTransposeOptions = TransposedConvolutionLayerOptions<Extent2D>;      // for Conv2DTranspose
using Conv3DTransposeOptions = TransposedConvolutionLayerOptions<Extent3D>;      // for Conv3DTranspose

// For Holdfast's own use: what a layer keeps of its options. There are no groups.
struct TransposedConvolutionSettings {
  ConvolutionSettings convolution;                // as those of a convolution
  std::vector<std::int64_t> output_padding = {};  // empty if it is not given
};

// [steps, channels] becomes [steps of the output, filters]. Kernel [kernel size, filters, channels], bias [filters].
//
//   Conv1DTranspose{32, 4, {.strides = 2, .padding = Padding::same}}  // [50, 64] becomes [100, 32]
class Conv1DTranspose final : public LayerOf<Conv1DTranspose> {
 public:
  // Throws Error{invalid_argument} for a number out of [1, kMaximumExtent], and for causal padding.
  Conv1DTranspose(std::int64_t filters, std::int64_t kernel_size, const Conv1DTransposeOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "Conv1DTranspose"; }
  std::optional<Activation> output_activation(std::optional<Activation>) const override {
    return settings_.convolution.activation.basic();
  }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  Conv1DTranspose(const TransposedConvolutionSettings& settings, const std::string& name);

  TransposedConvolutionSettings settings_;
};

// [height, width, channels] becomes [height and width of the output, filters]. Kernel [kernel height, kernel width,
// filters, channels], bias [filters].
//
//   Conv2DTranspose{16, 3, {.strides = 2}}  // [14, 14, 32] becomes [29, 29, 16]
class Conv2DTranspose final : public LayerOf<Conv2DTranspose> {
 public:
  // Throws Error{invalid_argument} for a number out of [1, kMaximumExtent], and for causal padding.
  Conv2DTranspose(std::int64_t filters, Extent2D kernel_size, const Conv2DTransposeOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "Conv2DTranspose"; }
  std::optional<Activation> output_activation(std::optional<Activation>) const override {
    return settings_.convolution.activation.basic();
  }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  Conv2DTranspose(const TransposedConvolutionSettings& settings, const std::string& name);

  TransposedConvolutionSettings settings_;
};

// [depth, height, width, channels] becomes [extents of the output, filters]. Kernel [kernel depth, kernel height,
// kernel width, filters, channels], bias [filters].
//
//   Conv3DTranspose{8, 2, {.strides = 2}}  // [8, 8, 8, 16] becomes [16, 16, 16, 8]
class Conv3DTranspose final : public LayerOf<Conv3DTranspose> {
 public:
  // Throws Error{invalid_argument} for a number out of [1, kMaximumExtent], and for causal padding.
  Conv3DTranspose(std::int64_t filters, Extent3D kernel_size, const Conv3DTransposeOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "Conv3DTranspose"; }
  std::optional<Activation> output_activation(std::optional<Activation>) const override {
    return settings_.convolution.activation.basic();
  }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  Conv3DTranspose(const TransposedConvolutionSettings& settings, const std::string& name);

  TransposedConvolutionSettings settings_;
};

}  // namespace holdfast
