// The steps of an element become smaller with the sum of the squares of its gradients.

#include "holdfast/optim/adagrad.h"

#include "core/json_object.h"
#include "optim/clipping_options.h"
#include "optim/rule_options.h"

namespace holdfast {

Adagrad::Adagrad(const AdagradOptions& options) : options_(options) {
  check_rule_options(name(), options);
  check_option(name(), "initial_accumulator_value", options.initial_accumulator_value,
               options.initial_accumulator_value >= 0, "not negative");
  // Without an epsilon, an element that never had a gradient would become 0 / 0.
  check_option(name(), "epsilon", options.epsilon, options.epsilon > 0, "positive");
}

// A savepoint holds this text, and a resume compares it. So its members and their order are data.
std::string Adagrad::configuration() const {
  JsonObject object(name());
  object.value("learning_rate", options_.learning_rate.configuration())
      .number("initial_accumulator_value", options_.initial_accumulator_value)
      .number("epsilon", options_.epsilon)
      .number("weight_decay", options_.weight_decay);
  add_clipping(object, clipping());
  add_rules(object, parameter_rules());
  add_average(object, weight_average());
  return object.text();
}

std::unique_ptr<Optimizer> Adagrad::with_learning_rate(const LearningRate& rate) const {
  return with_rate<Adagrad>(options_, rate);
}

GradientClipping Adagrad::clipping() const {
  return clipping_of(options_);
}

ParameterRules Adagrad::parameter_rules() const {
  return rules_of(options_);
}

WeightAverage Adagrad::weight_average() const {
  return average_of(options_);
}

std::unique_ptr<Optimizer> Adagrad::with_weight_decay_times(float factor) const {
  return with_decay_times<Adagrad>(options_, factor);
}

std::vector<std::string> Adagrad::slot_names() const {
  return {"accumulator"};
}

std::vector<double> Adagrad::numbers(std::int64_t step) const {
  const double rate = options_.learning_rate.of_update(step);
  return {rate, kept_of(options_.weight_decay, rate)};
}

DescribedOptimizer::Updated Adagrad::describe(const Elements& of) const {
  const Value accumulator = of.slots[0] + square(of.gradient);
  // Epsilon is inside the root, as in Keras. It limits the first steps if the accumulator begins with 0.
  const Value change = of.gradient * of.numbers[0] / square_root(accumulator + options_.epsilon);
  return {.parameter = decayed(of.parameter, of.numbers[1], options_.weight_decay) - change, .slots = {accumulator}};
}

}  // namespace holdfast
