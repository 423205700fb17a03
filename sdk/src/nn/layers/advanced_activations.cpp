// Layers around functions of activation_function.h, which check the numbers and know the formulas. In files, a number
// that is not there is null, as in Keras. docs/decisions/layers.md

#include "holdfast/nn/advanced_activations.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "holdfast/base/error.h"
#include "holdfast/nn/functions.h"
#include "holdfast/nn/layer_builder.h"
#include "nn/graph/config.h"
#include "nn/layers/weight_limits.h"
#include "nn/operations/checks.h"
#include "nn/operations/strides.h"

namespace holdfast {

ReLU::ReLU(const ReLUOptions& options) : LayerOf(options.name), options_(options) {
  ActivationFunction::relu(options);  // checks the numbers
}

std::vector<Value> ReLU::build(LayerBuilder&, std::span<const Value> inputs) const {
  return {ActivationFunction::relu(options_)(only_input(inputs))};
}

void ReLU::write_config(ConfigWriter& config) const {
  // No maximum is null, as in Keras.
  const bool is_limited = options_.max_value != ReLUOptions::kUnlimited;
  config.numbers("max_value", {is_limited ? std::optional(options_.max_value) : std::nullopt});
  config.number("negative_slope", options_.negative_slope);
  config.number("threshold", options_.threshold);
}

std::shared_ptr<const Layer> ReLU::from_config(const std::string& name, ConfigReader& config) {
  // A list of one number, since only a list may hold null.
  const std::vector<std::optional<float>> maximum = config.numbers("max_value");
  if (maximum.size() != 1) {
    throw Error(ErrorCode::invalid_argument, fmt::format("\"max_value\" needs one number, not {}", maximum.size()));
  }
  ReLUOptions options = {.max_value = maximum[0].value_or(ReLUOptions::kUnlimited), .name = name};
  options.negative_slope = config.number("negative_slope");
  options.threshold = config.number("threshold");
  return std::make_shared<const ReLU>(options);
}

LeakyReLU::LeakyReLU(float negative_slope, const AdvancedActivationOptions& options)
    : LayerOf(options.name), negative_slope_(negative_slope) {
  // Keras refuses a negative slope for this layer, but not for the function.
  if (negative_slope >= 0 && std::isfinite(negative_slope)) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("LeakyReLU needs a finite slope of at least 0, not {}", negative_slope));
}

std::vector<Value> LeakyReLU::build(LayerBuilder&, std::span<const Value> inputs) const {
  return {ActivationFunction::leaky_relu(negative_slope_)(only_input(inputs))};
}

void LeakyReLU::write_config(ConfigWriter& config) const {
  config.number("negative_slope", negative_slope_);
}

std::shared_ptr<const Layer> LeakyReLU::from_config(const std::string& name, ConfigReader& config) {
  return std::make_shared<const LeakyReLU>(config.number("negative_slope"), AdvancedActivationOptions{.name = name});
}

ELU::ELU(float alpha, const AdvancedActivationOptions& options) : LayerOf(options.name), alpha_(alpha) {
  ActivationFunction::elu(alpha);  // checks the number
}

std::vector<Value> ELU::build(LayerBuilder&, std::span<const Value> inputs) const {
  return {ActivationFunction::elu(alpha_)(only_input(inputs))};
}

void ELU::write_config(ConfigWriter& config) const {
  config.number("alpha", alpha_);
}

std::shared_ptr<const Layer> ELU::from_config(const std::string& name, ConfigReader& config) {
  return std::make_shared<const ELU>(config.number("alpha"), AdvancedActivationOptions{.name = name});
}

PReLU::PReLU(const PReLUOptions& options) : LayerOf(options.name), options_(options) {
  // The number of axes is known when the layer is called. Until then -1 and 2 may be the same axis, which does no harm.
  const std::set<std::int64_t> axes(options.shared_axes.begin(), options.shared_axes.end());
  if (axes.size() == options.shared_axes.size()) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("PReLU needs different shared axes, not [{}]", fmt::join(options.shared_axes, ", ")));
}

std::vector<Value> PReLU::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  const Value& input = only_input(inputs);
  // An axis of extent 1 is broadcast, so that its positions share a slope (He et al., "Delving Deep into Rectifiers",
  // 2015).
  std::vector<std::int64_t> extents = input.shape().extents();
  for (const std::int64_t axis : options_.shared_axes) extents[checked_axis(axis, input.shape(), "PReLU")] = 1;
  const Value alpha = limited(builder, builder.parameter("alpha", Shape(extents), options_.alpha_initializer),
                              options_.alpha_regularizer, options_.alpha_constraint);
  // Both halves are functions of elements. So the gradient of a shared slope is the sum over all of its positions.
  return {relu(input) - alpha * relu(-input)};
}

void PReLU::write_config(ConfigWriter& config) const {
  config.text("alpha_initializer", options_.alpha_initializer.name());
  config.integers("shared_axes", options_.shared_axes);
  write_limits(config, "alpha", options_.alpha_regularizer, options_.alpha_constraint);
}

std::shared_ptr<const Layer> PReLU::from_config(const std::string& name, ConfigReader& config) {
  PReLUOptions options = {.alpha_initializer = Initializer::from_name(config.text("alpha_initializer")), .name = name};
  options.shared_axes = config.integers("shared_axes");
  options.alpha_regularizer = read_regularizer(config, "alpha_regularizer");
  options.alpha_constraint = read_constraint(config, "alpha_constraint");
  return std::make_shared<const PReLU>(options);
}

Softmax::Softmax(const SoftmaxOptions& options) : LayerOf(options.name), axis_(options.axis) {}

std::vector<Value> Softmax::build(LayerBuilder&, std::span<const Value> inputs) const {
  const Value& input = only_input(inputs);
  const std::size_t axis = checked_axis(axis_, input.shape(), "Softmax");
  // Kernels of softmax go along the last axis alone.
  if (axis + 1 == input.shape().rank()) return {softmax(input)};
  // The two axes change places, and back.
  AxisList order(input.shape().rank());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[axis], order.back());
  return {permute(softmax(permute(input, order)), order)};
}

void Softmax::write_config(ConfigWriter& config) const {
  config.integer("axis", axis_);
}

std::shared_ptr<const Layer> Softmax::from_config(const std::string& name, ConfigReader& config) {
  return std::make_shared<const Softmax>(SoftmaxOptions{.axis = config.integer("axis"), .name = name});
}

}  // namespace holdfast
