// The bias is added by a function of its own, so that back ends need only the passes of a convolution. Kernels are
// [windows..., filters, channels], as in Keras: they are those of the convolution that is reversed.
// docs/decisions/models.md

#include "holdfast/nn/transposed_convolution_layers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "holdfast/base/error.h"
#include "holdfast/nn/functions.h"
#include "nn/layers/convolution/convolution_settings.h"
#include "nn/layers/kernel_and_bias.h"
#include "nn/operations/operations.h"

namespace holdfast {

template <class Extent>
static TransposedConvolutionSettings transposed_settings(std::int64_t filters, const Extent& kernel_size,
                                                         const auto& options) {
  return {.convolution = {.filters = filters,
                          .kernel_size = extents_of(kernel_size),
                          .strides = extents_of(options.strides),
                          .padding = options.padding,
                          .dilation_rate = extents_of(options.dilation_rate),
                          .activation = options.activation,
                          .use_bias = options.use_bias,
                          .kernel_initializer = options.kernel_initializer,
                          .bias_initializer = options.bias_initializer,
                          .kernel_regularizer = options.kernel_regularizer,
                          .bias_regularizer = options.bias_regularizer,
                          .kernel_constraint = options.kernel_constraint,
                          .bias_constraint = options.bias_constraint},
          .output_padding = options.output_padding ? extents_of(*options.output_padding) : std::vector<std::int64_t>{}};
}

static void check_transposed(std::string_view kind, const TransposedConvolutionSettings& settings) {
  const ConvolutionSettings& convolution = settings.convolution;
  check_convolution(kind, convolution);
  // check_convolution() accepts causal padding along one axis, for Conv1D.
  if (convolution.padding == Padding::causal) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} needs padding valid or same, not causal", kind));
  }
  for (std::size_t axis = 0; axis < settings.output_padding.size(); ++axis) {
    // With a stride or more, the output would have room for another window.
    if (settings.output_padding[axis] >= 0 && settings.output_padding[axis] < convolution.strides[axis]) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} needs an output padding from 0 to below the stride of its axis, not {} with strides {}",
                            kind, settings.output_padding, convolution.strides));
  }
}

static std::vector<Value> build_transposed(LayerBuilder& builder, std::span<const Value> inputs,
                                           const TransposedConvolutionSettings& settings) {
  const ConvolutionSettings& options = settings.convolution;
  const Value& input = only_input(inputs);
  check_spatial_axes(input.shape(), options.kernel_size.size());
  const std::int64_t channels = input.shape()[input.shape().rank() - 1];
  std::vector<std::int64_t> extents = options.kernel_size;
  extents.insert(extents.end(), {options.filters, channels});
  const Shape shape(extents);  // refuses extents whose products do not fit
  const std::int64_t window = Shape(options.kernel_size).element_count();
  // Keras takes fans from the kernel's last axes, whichever of them are the inputs.
  const Fans fans = {.in = window * options.filters, .out = window * channels};
  const Value kernel = limited_kernel(builder, shape, fans, options);
  // The pass of a convolution to its input: where that has strides, this one spreads its output.
  Value output = transposed_convolution(input, kernel,
                                        {.strides = options.strides,
                                         .padding = options.padding,
                                         .dilation_rate = options.dilation_rate,
                                         .output_padding = settings.output_padding});
  if (options.use_bias) {
    // The bias is aligned at the last axis, the filters.
    output = output + limited_bias(builder, {options.filters}, fans, options);
  }
  return {options.activation(output)};
}

static void write_transposed(ConfigWriter& config, const TransposedConvolutionSettings& settings) {
  write_convolution(config, settings.convolution);
  // A list that is not there lets the layer choose the extents, which no list can say.
  if (!settings.output_padding.empty()) config.integers("output_padding", settings.output_padding);
}

static TransposedConvolutionSettings read_transposed(ConfigReader& config, std::size_t spatial_axes) {
  TransposedConvolutionSettings settings = {.convolution = read_convolution(config, spatial_axes)};
  if (config.has("output_padding")) settings.output_padding = read_extents(config, "output_padding", spatial_axes);
  // The options of convolutions may have groups, so a file may name them here.
  if (settings.convolution.groups == 1) return settings;
  throw Error(ErrorCode::invalid_file, "a transposed convolution of the model graph has groups, which it cannot have");
}

// The classes differ in their names and in their numbers of axes. Readers use private constructors, which
// std::make_shared() cannot call.
Conv1DTranspose::Conv1DTranspose(const TransposedConvolutionSettings& settings, const std::string& name)
    : LayerOf(name), settings_(settings) {
  check_transposed("Conv1DTranspose", settings);
}

Conv1DTranspose::Conv1DTranspose(std::int64_t filters, std::int64_t kernel_size, const Conv1DTransposeOptions& options)
    : Conv1DTranspose(transposed_settings(filters, kernel_size, options), options.name) {}

std::vector<Value> Conv1DTranspose::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  return build_transposed(builder, inputs, settings_);
}

void Conv1DTranspose::write_config(ConfigWriter& config) const {
  write_transposed(config, settings_);
}

std::shared_ptr<const Layer> Conv1DTranspose::from_config(const std::string& name, ConfigReader& config) {
  return std::shared_ptr<const Layer>(new Conv1DTranspose(read_transposed(config, 1), name));
}

Conv2DTranspose::Conv2DTranspose(const TransposedConvolutionSettings& settings, const std::string& name)
    : LayerOf(name), settings_(settings) {
  check_transposed("Conv2DTranspose", settings);
}

Conv2DTranspose::Conv2DTranspose(std::int64_t filters, Extent2D kernel_size, const Conv2DTransposeOptions& options)
    : Conv2DTranspose(transposed_settings(filters, kernel_size, options), options.name) {}

std::vector<Value> Conv2DTranspose::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  return build_transposed(builder, inputs, settings_);
}

void Conv2DTranspose::write_config(ConfigWriter& config) const {
  write_transposed(config, settings_);
}

std::shared_ptr<const Layer> Conv2DTranspose::from_config(const std::string& name, ConfigReader& config) {
  return std::shared_ptr<const Layer>(new Conv2DTranspose(read_transposed(config, 2), name));
}

Conv3DTranspose::Conv3DTranspose(const TransposedConvolutionSettings& settings, const std::string& name)
    : LayerOf(name), settings_(settings) {
  check_transposed("Conv3DTranspose", settings);
}

Conv3DTranspose::Conv3DTranspose(std::int64_t filters, Extent3D kernel_size, const Conv3DTransposeOptions& options)
    : Conv3DTranspose(transposed_settings(filters, kernel_size, options), options.name) {}

std::vector<Value> Conv3DTranspose::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  return build_transposed(builder, inputs, settings_);
}

void Conv3DTranspose::write_config(ConfigWriter& config) const {
  write_transposed(config, settings_);
}

std::shared_ptr<const Layer> Conv3DTranspose::from_config(const std::string& name, ConfigReader& config) {
  return std::shared_ptr<const Layer>(new Conv3DTranspose(read_transposed(config, 3), name));
}

}  // namespace holdfast
