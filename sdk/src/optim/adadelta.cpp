// The size of a step follows from the sizes of the steps before it.

#include "holdfast/optim/adadelta.h"

#include "core/json_object.h"
#include "optim/clipping_options.h"
#include "optim/rule_options.h"

namespace holdfast {

Adadelta::Adadelta(const AdadeltaOptions& options) : options_(options) {
  check_rule_options(name(), options);
  check_option(name(), "rho", options.rho, options.rho >= 0 && options.rho < 1, "in [0, 1)");
  // Without an epsilon, an element that never had a gradient would become 0 / 0.
  check_option(name(), "epsilon", options.epsilon, options.epsilon > 0, "positive");
}

// A savepoint holds this text, and a resume compares it. So its members and their order are data.
std::string Adadelta::configuration() const {
  JsonObject object(name());
  object.value("learning_rate", options_.learning_rate.configuration())
      .number("rho", options_.rho)
      .number("epsilon", options_.epsilon)
      .number("weight_decay", options_.weight_decay);
  add_clipping(object, clipping());
  add_rules(object, parameter_rules());
  add_average(object, weight_average());
  return object.text();
}

std::unique_ptr<Optimizer> Adadelta::with_learning_rate(const LearningRate& rate) const {
  return with_rate<Adadelta>(options_, rate);
}

GradientClipping Adadelta::clipping() const {
  return clipping_of(options_);
}

ParameterRules Adadelta::parameter_rules() const {
  return rules_of(options_);
}

WeightAverage Adadelta::weight_average() const {
  return average_of(options_);
}

std::unique_ptr<Optimizer> Adadelta::with_weight_decay_times(float factor) const {
  return with_decay_times<Adadelta>(options_, factor);
}

std::vector<std::string> Adadelta::slot_names() const {
  return {"accumulated_grad", "accumulated_delta_var"};
}

std::vector<double> Adadelta::numbers(std::int64_t step) const {
  const double rate = options_.learning_rate.of_update(step);
  return {rate, kept_of(options_.weight_decay, rate)};
}

DescribedOptimizer::Updated Adadelta::describe(const Elements& of) const {
  const float rest = 1.0F - options_.rho;
  const Value gradients = of.slots[0] * options_.rho + square(of.gradient) * rest;
  // The root holds the changes before this step; this change enters them only below. Epsilon is inside both roots, as
  // in the paper. In Adam it is outside.
  const Value change =
      square_root(of.slots[1] + options_.epsilon) * of.gradient / square_root(gradients + options_.epsilon);
  const Value changes = of.slots[1] * options_.rho + square(change) * rest;
  return {.parameter = decayed(of.parameter, of.numbers[1], options_.weight_decay) - change * of.numbers[0],
          .slots = {gradients, changes}};
}

}  // namespace holdfast
