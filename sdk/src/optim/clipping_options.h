#pragma once

// The options that all optimizers of Holdfast share: gradient clipping, rules for single arrays (parameter_rules.h),
// and averages (weight_average.h). Each optimizer has them as members of its own options, so that a user sets them in
// one place.

#include <memory>
#include <string>

#include "core/json_object.h"
#include "holdfast/optim/gradient_clipping.h"
#include "holdfast/optim/optimizer.h"
#include "holdfast/optim/parameter_rules.h"
#include "holdfast/optim/weight_average.h"

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
          .learning_rate_factors = options.learning_rate_factors,
          .weight_decay_factors = options.weight_decay_factors};
}

// An optimizer with these options, but with its weight decay times the factor and without rules.
template <class Kind, class Options>
std::unique_ptr<Optimizer> with_decay_times(Options options, float factor) {
  options.weight_decay *= factor;
  options.exclude_from_weight_decay.clear();
  options.learning_rate_factors.clear();
  options.weight_decay_factors.clear();
  return std::make_unique<Kind>(options);
}

// Throws Error{invalid_argument} for a factor that is negative or not finite.
void check_rules(const std::string& optimizer, const ParameterRules& rules);

// Appends the rules that there are: "exclude_from_weight_decay":["*/bias"].
void add_rules(JsonObject& configuration, const ParameterRules& rules);

// The moving averages that the options of an optimizer ask for.
template <class Options>
WeightAverage average_of(const Options& options) {
  return {.is_kept = options.use_ema,
          .momentum = options.ema_momentum,
          .overwrite_frequency = options.ema_overwrite_frequency};
}

// Throws Error{invalid_argument} for a momentum out of [0, 1], or a negative frequency.
void check_average(const std::string& optimizer, const WeightAverage& average);

// Appends the options if averages are kept: "use_ema":true,"ema_momentum":0.99.
void add_average(JsonObject& configuration, const WeightAverage& average);

}  // namespace holdfast
