#pragma once

// What the optimizers with the options of Keras share.

#include <string>

#include "core/json_object.h"
#include "holdfast/nn/functions.h"
#include "optim/check_option.h"
#include "optim/clipping_options.h"

namespace holdfast {

// Throws Error{invalid_argument} for a learning rate, a weight decay or a clipping out of its range.
template <class Options>
void check_rule_options(const std::string& optimizer, const Options& options) {
  check_learning_rate(optimizer, options.learning_rate);
  check_option(optimizer, "weight_decay", options.weight_decay, options.weight_decay >= 0, "not negative");
  check_clipping(optimizer, clipping_of(options));
  check_rules(optimizer, rules_of(options));
  check_average(optimizer, average_of(options));
}

// The same, and the two betas and the epsilon of the rules that descend from Adam.
template <class Options>
void check_moment_options(const std::string& optimizer, const Options& options) {
  check_rule_options(optimizer, options);
  check_option(optimizer, "beta_1", options.beta_1, options.beta_1 >= 0 && options.beta_1 < 1, "in [0, 1)");
  check_option(optimizer, "beta_2", options.beta_2, options.beta_2 >= 0 && options.beta_2 < 1, "in [0, 1)");
  // Without an epsilon, an element that never had a gradient would become 0 / 0.
  check_option(optimizer, "epsilon", options.epsilon, options.epsilon > 0, "positive");
}

// The configuration of these rules. A savepoint holds this text, and a resume compares it. So its members and their
// order are data.
template <class Options>
std::string moment_configuration(const std::string& optimizer, const Options& options) {
  JsonObject object(optimizer);
  object.value("learning_rate", options.learning_rate.configuration())
      .number("beta_1", options.beta_1)
      .number("beta_2", options.beta_2)
      .number("epsilon", options.epsilon)
      .number("weight_decay", options.weight_decay);
  add_clipping(object, clipping_of(options));
  add_rules(object, rules_of(options));
  add_average(object, average_of(options));
  return object.text();
}

// The factor of a parameter before a step (Loshchilov and Hutter, 2019): decay is apart from the gradient, as in Keras.
inline double kept_of(float weight_decay, double learning_rate) {
  return 1.0 - weight_decay * learning_rate;
}

// The parameter that a step begins with. Without decay nothing is multiplied.
inline Value decayed(const Value& parameter, const Value& kept, float weight_decay) {
  return weight_decay > 0 ? parameter * kept : parameter;
}

}  // namespace holdfast
