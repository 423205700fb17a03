#pragma once

// What layers say of an array of weights besides its beginning: its penalty (regularizer.h) and its constraint
// (constraint.h). In files both have the name of the array, "kernel_regularizer", and are written only where there are
// some: texts without them are those of before there were any.

#include <fmt/format.h>

#include <string_view>

#include "holdfast/nn/layer_builder.h"
#include "holdfast/nn/layer_config.h"

namespace holdfast {

// The parameter, with both.
inline Value limited(LayerBuilder& builder, const Value& parameter, const Regularizer& regularizer,
                     const Constraint& constraint) {
  builder.regularize(parameter, regularizer);
  builder.constrain(parameter, constraint);
  return parameter;
}

inline void write_limits(ConfigWriter& config, std::string_view array, const Regularizer& regularizer,
                         const Constraint& constraint) {
  if (!regularizer.is_none()) config.text(fmt::format("{}_regularizer", array), regularizer.name());
  if (!constraint.is_none()) config.text(fmt::format("{}_constraint", array), constraint.name());
}

inline Regularizer read_regularizer(ConfigReader& config, std::string_view key) {
  return config.has(key) ? Regularizer::from_name(config.text(key)) : Regularizer();
}

inline Constraint read_constraint(ConfigReader& config, std::string_view key) {
  return config.has(key) ? Constraint::from_name(config.text(key)) : Constraint();
}

// Those of the arrays gamma and beta, which are options of normalizations.
void write_limits_of_gamma_and_beta(ConfigWriter& config, const auto& options) {
  write_limits(config, "gamma", options.gamma_regularizer, options.gamma_constraint);
  write_limits(config, "beta", options.beta_regularizer, options.beta_constraint);
}

void read_limits_of_gamma_and_beta(ConfigReader& config, auto& options) {
  options.beta_regularizer = read_regularizer(config, "beta_regularizer");
  options.gamma_regularizer = read_regularizer(config, "gamma_regularizer");
  options.beta_constraint = read_constraint(config, "beta_constraint");
  options.gamma_constraint = read_constraint(config, "gamma_constraint");
}

}  // namespace holdfast
