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

// Where an array begins, if that is not the default of its layer.
inline void write_initializer(ConfigWriter& config, std::string_view array, const Initializer& initializer,
                              const Initializer& otherwise) {
  if (initializer.name() != otherwise.name()) config.text(fmt::format("{}_initializer", array), initializer.name());
}

inline Initializer read_initializer(ConfigReader& config, std::string_view array, const Initializer& otherwise) {
  const std::string key = fmt::format("{}_initializer", array);
  return config.has(key) ? Initializer::from_name(config.text(key)) : otherwise;
}

// The options of the arrays gamma and beta, which normalizations have.
void write_options_of_gamma_and_beta(ConfigWriter& config, const auto& options) {
  write_initializer(config, "gamma", options.gamma_initializer, Initializer::ones());
  write_initializer(config, "beta", options.beta_initializer, Initializer::zeros());
  write_limits(config, "gamma", options.gamma_regularizer, options.gamma_constraint);
  write_limits(config, "beta", options.beta_regularizer, options.beta_constraint);
}

void read_options_of_gamma_and_beta(ConfigReader& config, auto& options) {
  options.gamma_initializer = read_initializer(config, "gamma", Initializer::ones());
  options.beta_initializer = read_initializer(config, "beta", Initializer::zeros());
  options.beta_regularizer = read_regularizer(config, "beta_regularizer");
  options.gamma_regularizer = read_regularizer(config, "gamma_regularizer");
  options.beta_constraint = read_constraint(config, "beta_constraint");
  options.gamma_constraint = read_constraint(config, "gamma_constraint");
}

}  // namespace holdfast
