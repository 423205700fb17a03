// Axes around that of the channels are joined, so that one formula of values serves any axis. Gradients follow from it.
// docs/decisions/models.md

#include "holdfast/nn/group_normalization.h"

#include <fmt/format.h>

#include <cmath>

#include "holdfast/base/error.h"
#include "holdfast/nn/functions.h"
#include "holdfast/nn/layer_builder.h"
#include "nn/graph/config.h"
#include "nn/layers/weight_limits.h"
#include "nn/operations/checks.h"
#include "nn/operations/operations.h"
#include "nn/operations/strides.h"

namespace holdfast {

GroupNormalization::GroupNormalization(std::int64_t groups, const GroupNormalizationOptions& options)
    : LayerOf(options.name), groups_(groups), options_(options) {
  // As in Keras, -1 stands for a group of each channel.
  if (groups != -1) check_extent("GroupNormalization", "-1 or a number of groups", groups);
  if (options.epsilon > 0 && std::isfinite(options.epsilon)) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("GroupNormalization needs a finite epsilon above 0, not {}", options.epsilon));
}

std::vector<Value> GroupNormalization::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  const Value& input = only_input(inputs);
  const Shape& shape = input.shape();
  const std::size_t axis = checked_axis(options_.axis, shape, "GroupNormalization");
  const std::int64_t channels = shape[axis];
  const std::int64_t groups = groups_ == -1 ? channels : groups_;
  if (channels % groups != 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("its {} groups must divide the {} channels of axis {}; choose another number of groups",
                            groups, channels, options_.axis));
  }
  // Axes before that of the channels are joined, and so are axes after it. So one formula serves any axis.
  std::int64_t inner = 1;  // elements after the axis
  for (std::size_t after = axis + 1; after < shape.rank(); ++after) inner *= shape[after];
  const std::int64_t outer = shape.element_count() / channels / inner;

  // Statistics go over all axes but that of the groups (Wu and He, "Group Normalization", 2018).
  const Value grouped = reshape(input, Shape{outer, groups, channels / groups, inner});
  // The variance is the mean of squared deviations. A difference of two large squares would lose its digits.
  const Value centered = grouped - mean(grouped, {0, 2, 3}, ReducedAxes::keep);
  const Value variance = mean(square(centered), {0, 2, 3}, ReducedAxes::keep);
  Value output = reshape(centered * reciprocal_root(variance + options_.epsilon), Shape{outer, channels, inner});
  // Each channel has a factor and an offset. They are aligned with the axis of channels, which is not the last one
  // here.
  if (options_.has_scale) {
    const Value gamma = limited(builder, builder.parameter("gamma", {channels}, options_.gamma_initializer),
                                options_.gamma_regularizer, options_.gamma_constraint);
    output = output * reshape(gamma, Shape{channels, 1});
  }
  if (options_.has_center) {
    const Value beta = limited(builder, builder.parameter("beta", {channels}, options_.beta_initializer),
                               options_.beta_regularizer, options_.beta_constraint);
    output = output + reshape(beta, Shape{channels, 1});
  }
  return {reshape(output, shape.extents())};
}

void GroupNormalization::write_config(ConfigWriter& config) const {
  config.integer("groups", groups_);
  config.integer("axis", options_.axis);
  config.number("epsilon", options_.epsilon);
  config.boolean("scale", options_.has_scale);
  config.boolean("center", options_.has_center);
  write_options_of_gamma_and_beta(config, options_);
}

std::shared_ptr<const Layer> GroupNormalization::from_config(const std::string& name, ConfigReader& config) {
  GroupNormalizationOptions options = {.axis = config.integer("axis"), .epsilon = config.number("epsilon")};
  options.has_scale = config.boolean("scale");
  options.has_center = config.boolean("center");
  read_options_of_gamma_and_beta(config, options);
  options.name = name;
  return std::make_shared<const GroupNormalization>(config.integer("groups"), options);
}

}  // namespace holdfast
