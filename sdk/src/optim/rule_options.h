#pragma once

// What the optimizers with the options of Keras share.

#include <string>

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
