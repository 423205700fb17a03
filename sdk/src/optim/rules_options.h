#pragma once

// The options of optimizers for single arrays, which all optimizers of Holdfast have (parameter_rules.h).

#include <memory>
#include <string>

#include "core/json_object.h"
#include "holdfast/optim/optimizer.h"
#include "holdfast/optim/parameter_rules.h"

namespace holdfast {

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
