// Root mean square propagation, with the options of Keras.

#include "holdfast/optim/rmsprop.h"

#include "core/json_object.h"
#include "nn/operations/elements.h"
#include "optim/clipping_options.h"
#include "optim/rule_options.h"

namespace holdfast {

RMSprop::RMSprop(const RMSpropOptions& options) : options_(options) {
  check_rule_options(name(), options);
  check_option(name(), "rho", options.rho, options.rho >= 0 && options.rho < 1, "in [0, 1)");
  check_option(name(), "momentum", options.momentum, options.momentum >= 0 && options.momentum <= 1, "in [0, 1]");
  // Without an epsilon, an element that never had a gradient would become 0 / 0.
  check_option(name(), "epsilon", options.epsilon, options.epsilon > 0, "positive");
}

// A savepoint holds this text, and a resume compares it. So its members and their order are data.
std::string RMSprop::configuration() const {
  JsonObject object(name());
  object.value("learning_rate", options_.learning_rate.configuration())
      .number("rho", options_.rho)
      .number("momentum", options_.momentum)
      .number("epsilon", options_.epsilon)
      .boolean("centered", options_.centered)
      .number("weight_decay", options_.weight_decay);
  add_clipping(object, clipping());
  add_rules(object, parameter_rules());
  add_average(object, weight_average());
  return object.text();
}

std::unique_ptr<Optimizer> RMSprop::with_learning_rate(const LearningRate& rate) const {
  return with_rate<RMSprop>(options_, rate);
}

GradientClipping RMSprop::clipping() const {
  return clipping_of(options_);
}

ParameterRules RMSprop::parameter_rules() const {
  return rules_of(options_);
}

WeightAverage RMSprop::weight_average() const {
  return average_of(options_);
}

std::unique_ptr<Optimizer> RMSprop::with_weight_decay_times(float factor) const {
  return with_decay_times<RMSprop>(options_, factor);
}

std::vector<std::string> RMSprop::slot_names() const {
  std::vector<std::string> names = {"velocity"};
  // Slots take memory and time, so only those that the options need are there.
  if (options_.momentum > 0) names.emplace_back("momentum");
  if (options_.centered) names.emplace_back("average_gradient");
  return names;
}

std::vector<double> RMSprop::numbers(std::int64_t step) const {
  const double rate = options_.learning_rate.of_update(step);
  return {rate, kept_of(options_.weight_decay, rate)};
}

DescribedOptimizer::Updated RMSprop::describe(const Elements& of) const {
  const float rest = 1.0F - options_.rho;
  Updated updated{.parameter = of.parameter, .slots = of.slots};
  const Value velocity = of.slots[0] * options_.rho + square(of.gradient) * rest;
  updated.slots[0] = velocity;
  Value variance = velocity;
  if (options_.centered) {
    // The average is the last slot, with a slot of momentum before it or without.
    Value& average = updated.slots.back();
    average = average * options_.rho + of.gradient * rest;
    // Rounding may make the difference of two large numbers negative.
    variance = element_function(compute::ElementFunction::maximum, {velocity - square(average), 0.0F});
  }
  Value change = of.gradient * of.numbers[0] / square_root(variance + options_.epsilon);
  // The momentum contains the learning rate, as in Keras, and as that of SGD.
  if (options_.momentum > 0) change = updated.slots[1] = of.slots[1] * options_.momentum + change;
  updated.parameter = decayed(of.parameter, of.numbers[1], options_.weight_decay) - change;
  return updated;
}

}  // namespace holdfast
