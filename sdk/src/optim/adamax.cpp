// Adam with the largest of the gradients in place of the root of their mean square.

#include "holdfast/optim/adamax.h"

#include <cmath>

#include "optim/rule_options.h"

namespace holdfast {

Adamax::Adamax(const AdamaxOptions& options) : options_(options) {
  check_moment_options(name(), options);
}

std::string Adamax::configuration() const {
  return moment_configuration(name(), options_);
}

std::unique_ptr<Optimizer> Adamax::with_learning_rate(const LearningRate& rate) const {
  return with_rate<Adamax>(options_, rate);
}

GradientClipping Adamax::clipping() const {
  return clipping_of(options_);
}

ParameterRules Adamax::parameter_rules() const {
  return rules_of(options_);
}

WeightAverage Adamax::weight_average() const {
  return average_of(options_);
}

std::unique_ptr<Optimizer> Adamax::with_weight_decay_times(float factor) const {
  return with_decay_times<Adamax>(options_, factor);
}

std::vector<std::string> Adamax::slot_names() const {
  return {"momentum", "norm"};
}

// Only the mean of gradients begins too small and is corrected. The norm is a maximum, so it needs no correction
// (Kingma and Ba, 2015, section 7.1).
std::vector<double> Adamax::numbers(std::int64_t step) const {
  const double rate = options_.learning_rate.of_update(step);
  const double correction = 1.0 - std::pow(static_cast<double>(options_.beta_1), static_cast<double>(step));
  return {rate / correction, kept_of(options_.weight_decay, rate)};
}

DescribedOptimizer::Updated Adamax::describe(const Elements& of) const {
  const Value momentum = of.slots[0] + (of.gradient - of.slots[0]) * (1.0F - options_.beta_1);
  // Epsilon is added to the divisor below, as in Keras. PyTorch adds it to |g| in this maximum instead.
  const Value norm = maximum(of.slots[1] * options_.beta_2, absolute(of.gradient));
  const Value change = momentum * of.numbers[0] / (norm + options_.epsilon);
  return {.parameter = decayed(of.parameter, of.numbers[1], options_.weight_decay) - change, .slots = {momentum, norm}};
}

}  // namespace holdfast
