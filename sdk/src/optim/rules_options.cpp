#include "optim/rules_options.h"

#include <fmt/format.h>

#include "core/json_text.h"
#include "optim/check_option.h"

namespace holdfast {

void check_rules(const std::string& optimizer, const ParameterRules& rules) {
  for (const LearningRateFactor& rule : rules.learning_rate_factors) {
    check_option(optimizer, fmt::format("the learning rate factor of \"{}\"", rule.pattern), rule.factor,
                 rule.factor >= 0, "not negative");
  }
}

void add_rules(JsonObject& configuration, const ParameterRules& rules) {
  if (!rules.exclude_from_weight_decay.empty()) {
    std::vector<std::string> texts;
    for (const std::string& pattern : rules.exclude_from_weight_decay) texts.push_back(json_string(pattern));
    configuration.value("exclude_from_weight_decay", fmt::format("[{}]", fmt::join(texts, ",")));
  }
  if (!rules.learning_rate_factors.empty()) {
    std::vector<std::string> texts;
    for (const LearningRateFactor& rule : rules.learning_rate_factors) {
      texts.push_back(fmt::format("[{},{}]", json_string(rule.pattern), json_number(rule.factor)));
    }
    configuration.value("learning_rate_factors", fmt::format("[{}]", fmt::join(texts, ",")));
  }
}

}  // namespace holdfast
