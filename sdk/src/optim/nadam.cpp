// Adam that looks ahead. Its products depend on the step alone, so they are computed from it and are not part of the
// state. docs/decisions/optimizers.md

#include "holdfast/optim/nadam.h"

#include <algorithm>
#include <cmath>

#include "optim/rule_options.h"

namespace holdfast {
namespace {

// The base 0.96 and the exponent t are those of Keras. PyTorch has its momentum_decay as a factor of t.
double momentum_of(double beta_1, std::int64_t step) {
  return beta_1 * (1.0 - 0.5 * std::pow(0.96, static_cast<double>(step)));
}

// The product of the momenta of steps 1 to `step`.
double product_of(double beta_1, std::int64_t step) {
  // 0.96^1024 is below the rounding of 1, so all later momenta are beta_1.
  constexpr std::int64_t kChanging = 1024;
  const std::int64_t changing = std::min(step, kChanging);
  double product = std::pow(beta_1, static_cast<double>(step - changing));
  for (std::int64_t one = 1; one <= changing; ++one) product *= momentum_of(beta_1, one);
  return product;
}

}  // namespace

Nadam::Nadam(const NadamOptions& options) : options_(options) {
  check_moment_options(name(), options);
}

std::string Nadam::configuration() const {
  return moment_configuration(name(), options_);
}

std::unique_ptr<Optimizer> Nadam::with_learning_rate(const LearningRate& rate) const {
  return with_rate<Nadam>(options_, rate);
}

GradientClipping Nadam::clipping() const {
  return clipping_of(options_);
}

ParameterRules Nadam::parameter_rules() const {
  return rules_of(options_);
}

WeightAverage Nadam::weight_average() const {
  return average_of(options_);
}

std::unique_ptr<Optimizer> Nadam::with_weight_decay_times(float factor) const {
  return with_decay_times<Nadam>(options_, factor);
}

std::vector<std::string> Nadam::slot_names() const {
  return {"momentum", "velocity"};
}

std::vector<double> Nadam::numbers(std::int64_t step) const {
  const double rate = options_.learning_rate.of_update(step);
  const double beta_1 = options_.beta_1;
  // `next` belongs to the momentum of the step to come. The gradient is weighted with that of this step.
  const double product = product_of(beta_1, step);
  const double next = momentum_of(beta_1, step + 1);
  const double correction = 1.0 - std::pow(static_cast<double>(options_.beta_2), static_cast<double>(step));
  return {rate * next / (1.0 - product * next), rate * (1.0 - momentum_of(beta_1, step)) / (1.0 - product),
          1.0 / correction, kept_of(options_.weight_decay, rate)};
}

DescribedOptimizer::Updated Nadam::describe(const Elements& of) const {
  const Value momentum = of.slots[0] + (of.gradient - of.slots[0]) * (1.0F - options_.beta_1);
  const Value velocity = of.slots[1] + (square(of.gradient) - of.slots[1]) * (1.0F - options_.beta_2);
  const Value ahead = momentum * of.numbers[0] + of.gradient * of.numbers[1];
  const Value change = ahead / (square_root(velocity * of.numbers[2]) + options_.epsilon);
  return {.parameter = decayed(of.parameter, of.numbers[3], options_.weight_decay) - change,
          .slots = {momentum, velocity}};
}

}  // namespace holdfast
