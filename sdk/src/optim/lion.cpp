// Each parameter moves by the learning rate, in the direction of the sign alone.

#include "holdfast/optim/lion.h"

#include "core/json_object.h"
#include "optim/clipping_options.h"
#include "optim/rule_options.h"

namespace holdfast {

Lion::Lion(const LionOptions& options) : options_(options) {
  check_rule_options(name(), options);
  // As in Keras: with 0, only the sign of the gradient would be left.
  check_option(name(), "beta_1", options.beta_1, options.beta_1 > 0 && options.beta_1 <= 1, "in (0, 1]");
  check_option(name(), "beta_2", options.beta_2, options.beta_2 >= 0 && options.beta_2 < 1, "in [0, 1)");
}

// A savepoint holds this text, and a resume compares it. So its members and their order are data.
std::string Lion::configuration() const {
  JsonObject object(name());
  object.value("learning_rate", options_.learning_rate.configuration())
      .number("beta_1", options_.beta_1)
      .number("beta_2", options_.beta_2)
      .number("weight_decay", options_.weight_decay);
  add_clipping(object, clipping());
  add_rules(object, parameter_rules());
  add_average(object, weight_average());
  return object.text();
}

std::unique_ptr<Optimizer> Lion::with_learning_rate(const LearningRate& rate) const {
  return with_rate<Lion>(options_, rate);
}

GradientClipping Lion::clipping() const {
  return clipping_of(options_);
}

ParameterRules Lion::parameter_rules() const {
  return rules_of(options_);
}

WeightAverage Lion::weight_average() const {
  return average_of(options_);
}

std::unique_ptr<Optimizer> Lion::with_weight_decay_times(float factor) const {
  return with_decay_times<Lion>(options_, factor);
}

std::vector<std::string> Lion::slot_names() const {
  return {"momentum"};
}

std::vector<double> Lion::numbers(std::int64_t step) const {
  const double rate = options_.learning_rate.of_update(step);
  return {rate, kept_of(options_.weight_decay, rate)};
}

// Both sums begin with the old momentum and differ in their betas. The direction must not be taken from the momentum
// that is kept: that would be another rule.
DescribedOptimizer::Updated Lion::describe(const Elements& of) const {
  const Value direction = sign(of.slots[0] * options_.beta_1 + of.gradient * (1.0F - options_.beta_1));
  return {.parameter = decayed(of.parameter, of.numbers[1], options_.weight_decay) - direction * of.numbers[0],
          .slots = {of.slots[0] * options_.beta_2 + of.gradient * (1.0F - options_.beta_2)}};
}

}  // namespace holdfast
