// A depthwise convolution is one with as many groups as channels: the kernel [windows..., channels, multiplier] has the
// numbers of a kernel [windows..., 1, channels * multiplier] in the same order. A separable convolution is a depthwise
// one, and then one with windows of one element, which mixes the channels. docs/decisions/models.md

#include "holdfast/nn/depthwise_layers.h"

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "nn/layers/convolution/convolution_settings.h"
#include "nn/layers/kernel_and_bias.h"
#include "nn/operations/operations.h"

namespace holdfast {

// The options of all classes have the same members, so that one function reads them.
template <class Extent>
static DepthwiseSettings depthwise_settings(const Extent& kernel_size, const auto& options) {
  return {.kernel_size = extents_of(kernel_size),
          .strides = extents_of(options.strides),
          .padding = options.padding,
          .dilation_rate = extents_of(options.dilation_rate),
          .depth_multiplier = options.depth_multiplier,
          .activation = options.activation,
          .use_bias = options.use_bias,
          .depthwise_initializer = options.depthwise_initializer,
          .bias_initializer = options.bias_initializer,
          .depthwise_regularizer = options.depthwise_regularizer,
          .bias_regularizer = options.bias_regularizer,
          .depthwise_constraint = options.depthwise_constraint,
          .bias_constraint = options.bias_constraint};
}

template <class Extent>
static SeparableSettings separable_settings(std::int64_t filters, const Extent& kernel_size, const auto& options) {
  return {.filters = filters,
          .depthwise = depthwise_settings(kernel_size, options),
          .pointwise_initializer = options.pointwise_initializer,
          .pointwise_regularizer = options.pointwise_regularizer,
          .pointwise_constraint = options.pointwise_constraint};
}

static SlidingWindows depthwise_windows(const DepthwiseSettings& settings) {
  return {settings.kernel_size, settings.strides, settings.dilation_rate, settings.padding};
}

static void check_depthwise(std::string_view kind, const DepthwiseSettings& settings) {
  check_kernel_windows(kind, depthwise_windows(settings));
  check_extent(kind, "a depth multiplier", settings.depth_multiplier);
  // check_kernel_windows() accepts causal padding along one axis, but these layers do not.
  if (settings.padding != Padding::causal) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} needs padding valid or same, not causal; take Conv1D with groups", kind));
}

static void check_separable(std::string_view kind, const SeparableSettings& settings) {
  check_extent(kind, "filters", settings.filters);
  check_depthwise(kind, settings.depthwise);
}

namespace {

// The kernel as the parameter has it, [windows..., channels, multiplier].
struct DepthwiseKernel {
  Value kernel;
  Fans fans;
  std::int64_t outputs;  // channels * multiplier
};

DepthwiseKernel depthwise_kernel(LayerBuilder& builder, const std::string& name, const Value& input,
                                 const DepthwiseSettings& settings) {
  // The windows are checked first, because their sentence says which input is needed.
  window_places(input.shape(), depthwise_windows(settings));
  const std::int64_t channels = input.shape()[input.shape().rank() - 1];
  std::vector<std::int64_t> extents = settings.kernel_size;
  extents.insert(extents.end(), {channels, settings.depth_multiplier});
  const Shape shape(extents);  // refuses extents whose products do not fit
  const std::int64_t window = Shape(settings.kernel_size).element_count();
  // Keras takes the fans from the last two axes of a kernel, which are channels and multiplier here.
  const Fans fans = {.in = window * channels, .out = window * settings.depth_multiplier};
  return {limited(builder, builder.parameter(name, shape, settings.depthwise_initializer, fans),
                  settings.depthwise_regularizer, settings.depthwise_constraint),
          fans, channels * settings.depth_multiplier};
}

Value convolve_depthwise(const Value& input, const DepthwiseKernel& kernel, const MaybeValue& bias,
                         const DepthwiseSettings& settings) {
  std::vector<std::int64_t> extents = settings.kernel_size;
  // Each group has one channel. The reshape is a view, so the kernel is not copied.
  extents.insert(extents.end(), {1, kernel.outputs});
  return convolution(input, reshape(kernel.kernel, Shape(extents)), bias,
                     {.strides = settings.strides,
                      .padding = settings.padding,
                      .dilation_rate = settings.dilation_rate,
                      // One group for each channel, so that no channel is mixed with another.
                      .groups = input.shape()[input.shape().rank() - 1]});
}

}  // namespace

static std::vector<Value> build_depthwise(LayerBuilder& builder, std::span<const Value> inputs,
                                          const DepthwiseSettings& settings) {
  const Value& input = only_input(inputs);
  // The kernel before the bias: parameters are listed in the order in which they are made.
  const DepthwiseKernel kernel = depthwise_kernel(builder, "kernel", input, settings);
  MaybeValue bias;
  if (settings.use_bias) bias = limited_bias(builder, {kernel.outputs}, kernel.fans, settings);
  return {settings.activation(convolve_depthwise(input, kernel, bias, settings))};
}

static std::vector<Value> build_separable(LayerBuilder& builder, std::span<const Value> inputs,
                                          const SeparableSettings& settings) {
  const Value& input = only_input(inputs);
  // Parameters are listed in the order in which they are made, which is that of Keras's files.
  const DepthwiseKernel kernel = depthwise_kernel(builder, "depthwise_kernel", input, settings.depthwise);
  // A window of one element sees one position, so this convolution only mixes channels.
  std::vector<std::int64_t> extents(settings.depthwise.kernel_size.size(), 1);
  // [1, ..., channels * multiplier, filters].
  extents.insert(extents.end(), {kernel.outputs, settings.filters});
  // Its windows have one element, so the fans are those of a dense layer.
  const Fans fans = {.in = kernel.outputs, .out = settings.filters};
  const Value pointwise =
      limited(builder, builder.parameter("pointwise_kernel", Shape(extents), settings.pointwise_initializer, fans),
              settings.pointwise_regularizer, settings.pointwise_constraint);
  MaybeValue bias;
  if (settings.depthwise.use_bias) bias = limited_bias(builder, {settings.filters}, fans, settings.depthwise);
  // Only the second convolution has a bias, as in Keras.
  const Value mixed =
      convolution(convolve_depthwise(input, kernel, std::nullopt, settings.depthwise), pointwise, bias, {});
  return {settings.depthwise.activation(mixed)};
}

// Both kinds of layers write these options, with the names of Keras. An option that only one of them has stands in its
// own function.
static void write_windows(ConfigWriter& config, const DepthwiseSettings& settings) {
  config.integers("kernel_size", settings.kernel_size);
  config.integers("strides", settings.strides);
  config.text("padding", name(settings.padding));
  config.integers("dilation_rate", settings.dilation_rate);
  config.integer("depth_multiplier", settings.depth_multiplier);
  config.text("activation", settings.activation.name());
  config.boolean("use_bias", settings.use_bias);
  config.text("depthwise_initializer", settings.depthwise_initializer.name());
  config.text("bias_initializer", settings.bias_initializer.name());
  write_limits(config, "depthwise", settings.depthwise_regularizer, settings.depthwise_constraint);
  write_limits(config, "bias", settings.bias_regularizer, settings.bias_constraint);
}

static DepthwiseSettings read_windows(ConfigReader& config, std::size_t spatial_axes) {
  return {.kernel_size = read_extents(config, "kernel_size", spatial_axes),
          .strides = read_extents(config, "strides", spatial_axes),
          .padding = padding_from_name(config.text("padding")),
          .dilation_rate = read_extents(config, "dilation_rate", spatial_axes),
          .depth_multiplier = config.integer("depth_multiplier"),
          .activation = ActivationFunction::from_name(config.text("activation")),
          .use_bias = config.boolean("use_bias"),
          .depthwise_initializer = Initializer::from_name(config.text("depthwise_initializer")),
          .bias_initializer = Initializer::from_name(config.text("bias_initializer")),
          .depthwise_regularizer = read_regularizer(config, "depthwise_regularizer"),
          .bias_regularizer = read_regularizer(config, "bias_regularizer"),
          .depthwise_constraint = read_constraint(config, "depthwise_constraint"),
          .bias_constraint = read_constraint(config, "bias_constraint")};
}

// Files have the options of both convolutions in one object, as Keras does.
static void write_separable(ConfigWriter& config, const SeparableSettings& settings) {
  config.integer("filters", settings.filters);
  write_windows(config, settings.depthwise);
  config.text("pointwise_initializer", settings.pointwise_initializer.name());
  write_limits(config, "pointwise", settings.pointwise_regularizer, settings.pointwise_constraint);
}

static SeparableSettings read_separable(ConfigReader& config, std::size_t spatial_axes) {
  return {.filters = config.integer("filters"),
          .depthwise = read_windows(config, spatial_axes),
          .pointwise_initializer = Initializer::from_name(config.text("pointwise_initializer")),
          .pointwise_regularizer = read_regularizer(config, "pointwise_regularizer"),
          .pointwise_constraint = read_constraint(config, "pointwise_constraint")};
}

// The classes below differ in their names and in their numbers of axes. Readers use private constructors, which
// std::make_shared() cannot call.
DepthwiseConv1D::DepthwiseConv1D(const DepthwiseSettings& settings, const std::string& name)
    : LayerOf(name), settings_(settings) {
  check_depthwise("DepthwiseConv1D", settings);
}

DepthwiseConv1D::DepthwiseConv1D(std::int64_t kernel_size, const DepthwiseConv1DOptions& options)
    : DepthwiseConv1D(depthwise_settings(kernel_size, options), options.name) {}

std::vector<Value> DepthwiseConv1D::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  return build_depthwise(builder, inputs, settings_);
}

void DepthwiseConv1D::write_config(ConfigWriter& config) const {
  write_windows(config, settings_);
}

std::shared_ptr<const Layer> DepthwiseConv1D::from_config(const std::string& name, ConfigReader& config) {
  return std::shared_ptr<const Layer>(new DepthwiseConv1D(read_windows(config, 1), name));
}

DepthwiseConv2D::DepthwiseConv2D(const DepthwiseSettings& settings, const std::string& name)
    : LayerOf(name), settings_(settings) {
  check_depthwise("DepthwiseConv2D", settings);
}

DepthwiseConv2D::DepthwiseConv2D(Extent2D kernel_size, const DepthwiseConv2DOptions& options)
    : DepthwiseConv2D(depthwise_settings(kernel_size, options), options.name) {}

std::vector<Value> DepthwiseConv2D::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  return build_depthwise(builder, inputs, settings_);
}

void DepthwiseConv2D::write_config(ConfigWriter& config) const {
  write_windows(config, settings_);
}

std::shared_ptr<const Layer> DepthwiseConv2D::from_config(const std::string& name, ConfigReader& config) {
  return std::shared_ptr<const Layer>(new DepthwiseConv2D(read_windows(config, 2), name));
}

SeparableConv1D::SeparableConv1D(const SeparableSettings& settings, const std::string& name)
    : LayerOf(name), settings_(settings) {
  check_separable("SeparableConv1D", settings);
}

SeparableConv1D::SeparableConv1D(std::int64_t filters, std::int64_t kernel_size, const SeparableConv1DOptions& options)
    : SeparableConv1D(separable_settings(filters, kernel_size, options), options.name) {}

std::vector<Value> SeparableConv1D::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  return build_separable(builder, inputs, settings_);
}

void SeparableConv1D::write_config(ConfigWriter& config) const {
  write_separable(config, settings_);
}

std::shared_ptr<const Layer> SeparableConv1D::from_config(const std::string& name, ConfigReader& config) {
  return std::shared_ptr<const Layer>(new SeparableConv1D(read_separable(config, 1), name));
}

SeparableConv2D::SeparableConv2D(const SeparableSettings& settings, const std::string& name)
    : LayerOf(name), settings_(settings) {
  check_separable("SeparableConv2D", settings);
}

SeparableConv2D::SeparableConv2D(std::int64_t filters, Extent2D kernel_size, const SeparableConv2DOptions& options)
    : SeparableConv2D(separable_settings(filters, kernel_size, options), options.name) {}

std::vector<Value> SeparableConv2D::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  return build_separable(builder, inputs, settings_);
}

void SeparableConv2D::write_config(ConfigWriter& config) const {
  write_separable(config, settings_);
}

std::shared_ptr<const Layer> SeparableConv2D::from_config(const std::string& name, ConfigReader& config) {
  return std::shared_ptr<const Layer>(new SeparableConv2D(read_separable(config, 2), name));
}

}  // namespace holdfast
