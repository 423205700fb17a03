// The layers differ in the length of their lists alone, so this code exists once for one to three axes. Options are
// checked when a layer is made, and shapes when it is called. docs/decisions/models.md

#include "nn/layers/convolution/convolution_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "holdfast/base/error.h"
#include "nn/layers/kernel_and_bias.h"
#include "nn/operations/operations.h"

namespace holdfast {

static bool has_above_one(const std::vector<std::int64_t>& list) {
  return std::any_of(list.begin(), list.end(), [](std::int64_t number) { return number > 1; });
}

void check_kernel_windows(std::string_view kind, const SlidingWindows& windows) {
  check_extents(kind, "kernel extents", windows.sizes);
  check_extents(kind, "strides", windows.strides);
  check_extents(kind, "dilation rates", windows.dilation_rate);
  // Causal padding keeps each place from seeing later steps, and only a single axis can be one of steps.
  if (windows.padding == Padding::causal && windows.sizes.size() > 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} needs padding valid or same, not causal, which is for layers along one axis", kind));
  }
  // Keras refuses both together, so a model with both could not be exchanged.
  if (!has_above_one(windows.strides) || !has_above_one(windows.dilation_rate)) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("{} needs strides or a dilation rate of 1, not strides {} with a dilation rate of {}; use two "
                  "layers, and let the second one, such as a pooling layer, have the strides",
                  kind, windows.strides, windows.dilation_rate));
}

void check_convolution(std::string_view kind, const ConvolutionSettings& settings) {
  check_extent(kind, "filters", settings.filters);
  check_extent(kind, "groups", settings.groups);
  check_kernel_windows(kind, {settings.kernel_size, settings.strides, settings.dilation_rate, settings.padding});
  // Each group makes equally many filters.
  if (settings.filters % settings.groups == 0) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} needs filters that its {} groups divide, not {}; take a multiple of {}", kind,
                          settings.groups, settings.filters, settings.groups));
}

std::vector<Value> build_convolution(LayerBuilder& builder, std::span<const Value> inputs,
                                     const ConvolutionSettings& settings) {
  const Value& input = only_input(inputs);
  window_places(input.shape(), {settings.kernel_size, settings.strides, settings.dilation_rate, settings.padding});
  // A filter reads the channels of its group alone, by which its fan is smaller too.
  const std::int64_t channels = input.shape()[input.shape().rank() - 1];
  if (channels % settings.groups != 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("it needs channels that its {} groups divide, not {}; take groups that divide {}",
                            settings.groups, channels, channels));
  }
  // The kernel's shape comes first: it refuses extents whose products, the fans among them, do not fit.
  std::vector<std::int64_t> extents = settings.kernel_size;
  extents.insert(extents.end(), {channels / settings.groups, settings.filters});
  const Shape kernel(extents);
  const std::int64_t window = Shape(settings.kernel_size).element_count();
  const Fans fans = {.in = window * (channels / settings.groups), .out = window * settings.filters};
  const KernelAndBias weights = kernel_and_bias(builder, kernel, fans, settings);
  const Value output = convolution(input, weights.kernel, weights.bias,
                                   {.strides = settings.strides,
                                    .padding = settings.padding,
                                    .dilation_rate = settings.dilation_rate,
                                    .groups = settings.groups});
  // The activation is an operation of its own, so any function may follow.
  return {settings.activation(output)};
}

void write_convolution(ConfigWriter& config, const ConvolutionSettings& settings) {
  config.integer("filters", settings.filters);
  config.integers("kernel_size", settings.kernel_size);
  config.integers("strides", settings.strides);
  config.text("padding", name(settings.padding));
  if (has_above_one(settings.dilation_rate)) config.integers("dilation_rate", settings.dilation_rate);
  if (settings.groups > 1) config.integer("groups", settings.groups);
  config.text("activation", settings.activation.name());
  config.boolean("use_bias", settings.use_bias);
  config.text("kernel_initializer", settings.kernel_initializer.name());
  config.text("bias_initializer", settings.bias_initializer.name());
  write_limits_of_kernel_and_bias(config, settings);
}

ConvolutionSettings read_convolution(ConfigReader& config, std::size_t spatial_axes) {
  // A file without dilation and groups means 1: write_convolution() leaves them out then.
  return {.filters = config.integer("filters"),
          .kernel_size = read_extents(config, "kernel_size", spatial_axes),
          .strides = read_extents(config, "strides", spatial_axes),
          .padding = padding_from_name(config.text("padding")),
          .dilation_rate = config.has("dilation_rate") ? read_extents(config, "dilation_rate", spatial_axes)
                                                       : std::vector<std::int64_t>(spatial_axes, 1),
          .groups = config.has("groups") ? config.integer("groups") : 1,
          .activation = ActivationFunction::from_name(config.text("activation")),
          .use_bias = config.boolean("use_bias"),
          .kernel_initializer = Initializer::from_name(config.text("kernel_initializer")),
          .bias_initializer = Initializer::from_name(config.text("bias_initializer")),
          .kernel_regularizer = read_regularizer(config, "kernel_regularizer"),
          .bias_regularizer = read_regularizer(config, "bias_regularizer"),
          .kernel_constraint = read_constraint(config, "kernel_constraint"),
          .bias_constraint = read_constraint(config, "bias_constraint")};
}

}  // namespace holdfast
