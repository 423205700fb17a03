// Both layers are formulas of values, so that their gradients follow, and devices need no kernels of their own.
// docs/decisions/models.md

#include "holdfast/nn/layer_normalization.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <set>

#include "holdfast/base/error.h"
#include "holdfast/nn/functions.h"
#include "holdfast/nn/layer_builder.h"
#include "nn/graph/config.h"
#include "nn/layers/weight_limits.h"
#include "nn/operations/checks.h"
#include "nn/operations/strides.h"

namespace holdfast {

static void check_epsilon(std::string_view kind, float epsilon) {
  // With an epsilon of 0, a sample of equal numbers would be divided by 0.
  if (epsilon > 0 && std::isfinite(epsilon)) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("{} needs a finite epsilon above 0, not {}", kind, epsilon));
}

static Shape channels_of(const Value& input) {
  if (input.shape().rank() == 0) throw Error(ErrorCode::invalid_argument, "it needs an input [..., channels]");
  return {input.shape()[input.shape().rank() - 1]};
}

LayerNormalization::LayerNormalization(const LayerNormalizationOptions& options)
    : LayerOf(options.name), options_(options) {
  check_epsilon("LayerNormalization", options.epsilon);
  if (options.axis.empty()) throw Error(ErrorCode::invalid_argument, "LayerNormalization needs an axis at least");
}

// The extents of the normalized axes, which are the last ones.
static Shape normalized_shape(const Shape& input, const std::vector<std::int64_t>& axes) {
  std::set<std::size_t> places;
  for (const std::int64_t axis : axes) places.insert(checked_axis(axis, input, "LayerNormalization"));
  const bool are_last = places.size() == axes.size() && *places.begin() + places.size() == input.rank();
  if (!are_last) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("it normalizes the last axes of an input {}, each named once, not [{}]; permute() the input",
                    input.to_string(), fmt::join(axes, ", ")));
  }
  return Shape({input.extents().begin() + static_cast<std::ptrdiff_t>(*places.begin()), input.extents().end()});
}

std::vector<Value> LayerNormalization::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  const Value& input = only_input(inputs);
  const Shape channels = normalized_shape(input.shape(), options_.axis);
  AxisList axes;
  for (std::size_t axis = 0; axis < channels.rank(); ++axis) axes.push_back(-static_cast<std::int64_t>(axis) - 1);
  // Ba et al., "Layer Normalization", 2016. The variance is the mean of squared deviations: a difference of two large
  // squares would lose its digits.
  const Value centered = input - mean(input, axes, ReducedAxes::keep);
  const Value variance = mean(square(centered), axes, ReducedAxes::keep);
  Value output = centered * reciprocal_root(variance + options_.epsilon);
  if (options_.has_scale) {
    output = output * limited(builder, builder.parameter("gamma", channels, options_.gamma_initializer),
                              options_.gamma_regularizer, options_.gamma_constraint);
  }
  if (options_.has_center) {
    output = output + limited(builder, builder.parameter("beta", channels, options_.beta_initializer),
                              options_.beta_regularizer, options_.beta_constraint);
  }
  return {output};
}

void LayerNormalization::write_config(ConfigWriter& config) const {
  // Texts of the last axis alone are those of before there was a choice.
  if (options_.axis != std::vector<std::int64_t>{-1}) config.integers("axis", options_.axis);
  config.number("epsilon", options_.epsilon);
  // Files name the options as Keras does.
  config.boolean("scale", options_.has_scale);
  config.boolean("center", options_.has_center);
  write_options_of_gamma_and_beta(config, options_);
}

std::shared_ptr<const Layer> LayerNormalization::from_config(const std::string& name, ConfigReader& config) {
  LayerNormalizationOptions options = {.epsilon = config.number("epsilon"), .name = name};
  if (config.has("axis")) options.axis = config.integers("axis");
  options.has_scale = config.boolean("scale");
  options.has_center = config.boolean("center");
  read_options_of_gamma_and_beta(config, options);
  return std::make_shared<const LayerNormalization>(options);
}

RMSNormalization::RMSNormalization(const RMSNormalizationOptions& options)
    : LayerOf(options.name), epsilon_(options.epsilon) {
  check_epsilon("RMSNormalization", options.epsilon);
}

std::vector<Value> RMSNormalization::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  const Value& input = only_input(inputs);
  // Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019: the mean is not taken away.
  const Value scale = builder.parameter("scale", channels_of(input), Initializer::ones());
  return {input * reciprocal_root(mean(square(input), {-1}, ReducedAxes::keep) + epsilon_) * scale};
}

void RMSNormalization::write_config(ConfigWriter& config) const {
  config.number("epsilon", epsilon_);
}

std::shared_ptr<const Layer> RMSNormalization::from_config(const std::string& name, ConfigReader& config) {
  return std::make_shared<const RMSNormalization>(
      RMSNormalizationOptions{.epsilon = config.number("epsilon"), .name = name});
}

}  // namespace holdfast
