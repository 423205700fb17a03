// All optimizers have these options. One rule refuses more than one of them: clipping twice is mostly a mistake.

#include "optim/clipping_options.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/json_text.h"
#include "holdfast/base/error.h"
#include "optim/check_option.h"

namespace holdfast {

// One table, so that the checks and the configuration name the options alike.
static std::array<std::pair<const char*, std::optional<float>>, 3> by_option(const GradientClipping& clipping) {
  return {{{"clip_value", clipping.value}, {"clip_norm", clipping.norm}, {"global_clip_norm", clipping.global_norm}}};
}

void check_clipping(const std::string& optimizer, const GradientClipping& clipping) {
  std::string given;
  for (const auto& [option, limit] : by_option(clipping)) {
    if (!limit) continue;
    check_option(optimizer, option, *limit, *limit > 0, "positive");
    if (!given.empty()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: {} and {} exclude each other; gradients are clipped in one way, so set one of them",
                              optimizer, given, option));
    }
    given = option;
  }
}

// An option that is not set is left out. So a run that began before the option existed has the same text and resumes.
void add_clipping(JsonObject& configuration, const GradientClipping& clipping) {
  for (const auto& [option, limit] : by_option(clipping)) {
    if (limit) configuration.number(option, *limit);
  }
}

// Patterns are not checked here: an optimizer is made before the model whose arrays they name.
void check_rules(const std::string& optimizer, const ParameterRules& rules) {
  for (const LearningRateFactor& rule : rules.learning_rate_factors) {
    check_option(optimizer, fmt::format("the learning rate factor of \"{}\"", rule.pattern), rule.factor,
                 rule.factor >= 0, "not negative");
  }
  for (const WeightDecayFactor& rule : rules.weight_decay_factors) {
    check_option(optimizer, fmt::format("the weight decay factor of \"{}\"", rule.pattern), rule.factor,
                 rule.factor >= 0, "not negative");
  }
}

template <class Factor>
static std::string text_of_factors(const std::vector<Factor>& rules) {
  // A list of pairs and not an object: where several patterns match an array the last one counts, so their order is
  // data.
  std::vector<std::string> texts;
  for (const Factor& rule : rules) {
    texts.push_back(fmt::format("[{},{}]", json_string(rule.pattern), json_number(rule.factor)));
  }
  return fmt::format("[{}]", fmt::join(texts, ","));
}

// Rules that are not there are left out, for the same reason as a limit that is not set.
void add_rules(JsonObject& configuration, const ParameterRules& rules) {
  if (!rules.exclude_from_weight_decay.empty()) {
    configuration.texts("exclude_from_weight_decay", rules.exclude_from_weight_decay);
  }
  if (!rules.learning_rate_factors.empty()) {
    configuration.value("learning_rate_factors", text_of_factors(rules.learning_rate_factors));
  }
  if (!rules.weight_decay_factors.empty()) {
    configuration.value("weight_decay_factors", text_of_factors(rules.weight_decay_factors));
  }
}

// Checked also where no average is kept: a wrong option is a mistake in any case.
void check_average(const std::string& optimizer, const WeightAverage& average) {
  check_option(optimizer, "ema_momentum", average.momentum, average.momentum >= 0 && average.momentum <= 1,
               "in [0, 1]");
  check_count(optimizer, "ema_overwrite_frequency", average.overwrite_frequency, 0);
}

// Configurations of runs without averages keep the text that they had before there were any.
void add_average(JsonObject& configuration, const WeightAverage& average) {
  if (!average.is_kept) return;
  configuration.boolean("use_ema", true).number("ema_momentum", average.momentum);
  if (average.overwrite_frequency > 0) {
    configuration.integer("ema_overwrite_frequency", average.overwrite_frequency);
  }
}

}  // namespace holdfast
