// Adam with the largest of the gradients in place of the root of their mean square.

#include "holdfast/optim/adamax.h"

#include <cmath>

#include "core/json_object.h"
#include "optim/clipping_options.h"
#include "optim/rule_options.h"

namespace holdfast {

Adamax::Adamax(const AdamaxOptions& options) : options_(options) {
  check_rule_options(name(), options);
  check_option(name(), "beta_1", options.beta_1, options.beta_1 >= 0 && options.beta_1 < 1, "in [0, 1)");
  check_option(name(), "beta_2", options.beta_2, options.beta_2 >= 0 && options.beta_2 < 1, "in [0, 1)");
  // Without an epsilon, an element that never had a gradient would become 0 / 0.
  check_option(name(), "epsilon", options.epsilon, options.epsilon > 0, "positive");
}

// A savepoint holds this text, and a resume compares it. So its members and their order are data.
std::string Adamax::configuration() const {
  JsonObject object(name());
  object.value("learning_rate", options_.learning_rate.configuration())
      .number("beta_1", options_.beta_1)
      .number("beta_2", options_.beta_2)
      .number("epsilon", options_.epsilon)
      .number("weight_decay", options_.weight_decay);
  add_clipping(object, clipping());
  return object.text();
}

GradientClipping Adamax::clipping() const {
  return clipping_of(options_);
}

std::vector<std::string> Adamax::slot_names() const {
  return {"momentum", "norm"};
}

std::vector<double> Adamax::numbers(std::int64_t step) const {
  const double rate = options_.learning_rate.of_update(step);
  const double correction = 1.0 - std::pow(static_cast<double>(options_.beta_1), static_cast<double>(step));
  return {rate / correction, kept_of(options_.weight_decay, rate)};
}

DescribedOptimizer::Updated Adamax::describe(const Elements& of) const {
  const Value momentum = of.slots[0] + (of.gradient - of.slots[0]) * (1.0F - options_.beta_1);
  const Value norm = maximum(of.slots[1] * options_.beta_2, absolute(of.gradient));
  const Value change = momentum * of.numbers[0] / (norm + options_.epsilon);
  return {.parameter = decayed(of.parameter, of.numbers[1], options_.weight_decay) - change, .slots = {momentum, norm}};
}

}  // namespace holdfast
