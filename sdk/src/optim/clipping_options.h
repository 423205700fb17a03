#pragma once

// The options that all optimizers of Holdfast share, of gradient clipping and for single arrays (parameter_rules.h).
// Each optimizer has them as members of its own options, so that a user sets them in one place.

#include <memory>
#include <string>

#include "core/json_object.h"
#include "holdfast/optim/gradient_clipping.h"
#include "holdfast/optim/optimizer.h"
#include "holdfast/optim/parameter_rules.h"

namespace holdfast {

// The clipping that the options of an optimizer ask for.
template <class Options>
GradientClipping clipping_of(const Options& options) {
  return {.value = options.clip_value, .norm = options.clip_norm, .global_norm = options.global_clip_norm};
}

// Throws Error{invalid_argument} for more than one limit, or for a limit that is not positive.
void check_clipping(const std::string& optimizer, const GradientClipping& clipping);

// Appends the option that is set, if there is one: "clip_norm":1.
void add_clipping(JsonObject& configuration, const GradientClipping& clipping);

// The rules that the options of an optimizer ask for.
template <class Options>
ParameterRules rules_of(const Options& options) {
  return {.exclude_from_weight_decay = options.exclude_from_weight_decay,
          .learning_rate_factors = options.learning_rate_factors};
}

// An optimizer with these options, but without weight decay and without rules.
template <class Kind, class Options>
std::unique_ptr<Optimizer> without_decay(Options options) {
  options.weight_decay = 0;
  options.exclude_from_weight_decay.clear();
  options.learning_rate_factors.clear();
  return std::make_unique<Kind>(options);
}

// Throws Error{invalid_argument} for a factor that is negative or not finite.
void check_rules(const std::string& optimizer, const ParameterRules& rules);

// Appends the rules that there are: "exclude_from_weight_decay":["*/bias"].
void add_rules(JsonObject& configuration, const ParameterRules& rules);

}  // namespace holdfast
