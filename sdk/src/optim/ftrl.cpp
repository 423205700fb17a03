// The parameter follows from the two slots alone, so the old one only matters for the sum in z.

#include "holdfast/optim/ftrl.h"

#include "core/json_object.h"
#include "optim/clipping_options.h"
#include "optim/rule_options.h"

namespace holdfast {
namespace {

// n^p. The default of the power is a root, which is much faster than a power.
Value power_of_sum(const Value& sum, float learning_rate_power) {
  return learning_rate_power == -0.5F ? square_root(sum) : power(sum, -learning_rate_power);
}

}  // namespace

Ftrl::Ftrl(const FtrlOptions& options) : options_(options) {
  check_rule_options(name(), options);
  check_option(name(), "learning_rate_power", options.learning_rate_power, options.learning_rate_power <= 0,
               "not positive");
  const auto check = [this](const char* option, float value) {
    check_option(name(), option, value, value >= 0, "not negative");
  };
  check("initial_accumulator_value", options.initial_accumulator_value);
  check("l1_regularization_strength", options.l1_regularization_strength);
  check("l2_regularization_strength", options.l2_regularization_strength);
  check("l2_shrinkage_regularization_strength", options.l2_shrinkage_regularization_strength);
  check("beta", options.beta);
}

// A savepoint holds this text, and a resume compares it. So its members and their order are data.
std::string Ftrl::configuration() const {
  JsonObject object(name());
  object.value("learning_rate", options_.learning_rate.configuration())
      .number("learning_rate_power", options_.learning_rate_power)
      .number("initial_accumulator_value", options_.initial_accumulator_value)
      .number("l1_regularization_strength", options_.l1_regularization_strength)
      .number("l2_regularization_strength", options_.l2_regularization_strength)
      .number("l2_shrinkage_regularization_strength", options_.l2_shrinkage_regularization_strength)
      .number("beta", options_.beta)
      .number("weight_decay", options_.weight_decay);
  add_clipping(object, clipping());
  add_rules(object, parameter_rules());
  add_average(object, weight_average());
  return object.text();
}

std::unique_ptr<Optimizer> Ftrl::with_learning_rate(const LearningRate& rate) const {
  return with_rate<Ftrl>(options_, rate);
}

GradientClipping Ftrl::clipping() const {
  return clipping_of(options_);
}

ParameterRules Ftrl::parameter_rules() const {
  return rules_of(options_);
}

WeightAverage Ftrl::weight_average() const {
  return average_of(options_);
}

std::unique_ptr<Optimizer> Ftrl::with_weight_decay_times(float factor) const {
  return with_decay_times<Ftrl>(options_, factor);
}

std::vector<std::string> Ftrl::slot_names() const {
  return {"accumulator", "linear"};
}

// Padding begins with 0 all the same (Optimizer::initial_value_of_slot()), and the update keeps it 0.
float Ftrl::initial_value_of_slot(std::size_t slot) const {
  return slot == 0 ? options_.initial_accumulator_value : 0;
}

std::vector<double> Ftrl::numbers(std::int64_t step) const {
  const double rate = options_.learning_rate.of_update(step);
  // A rate of 0 makes q 0, where the parameter stays as it is. Its quotients are left out: they would be infinite, and
  // pass() refuses such numbers.
  if (rate == 0) return {0, 0, 1};
  return {1.0 / rate, 2.0 * options_.l2_regularization_strength + options_.beta / rate,
          kept_of(options_.weight_decay, rate)};
}

DescribedOptimizer::Updated Ftrl::describe(const Elements& of) const {
  const float l1 = options_.l1_regularization_strength;
  const Value parameter = decayed(of.parameter, of.numbers[2], options_.weight_decay);
  const Value accumulator = of.slots[0] + square(of.gradient);
  // Both powers are multiplied by 1 / lr before they are subtracted, so that `after` also serves in q.
  const Value after = power_of_sum(accumulator, options_.learning_rate_power) * of.numbers[0];
  const Value before = power_of_sum(of.slots[0], options_.learning_rate_power) * of.numbers[0];
  // The shrinkage acts on the gradient in z alone. The sum of squares takes the gradient itself, as in Keras.
  const float shrinkage = 2.0F * options_.l2_shrinkage_regularization_strength;
  const Value gradient = shrinkage > 0 ? of.gradient + parameter * shrinkage : of.gradient;
  const Value linear = of.slots[1] + (gradient - (after - before) * parameter);
  const Value quadratic = after + of.numbers[1];
  const Value target = l1 > 0 ? minimum(maximum(linear, -l1), l1) - linear : -linear;
  return {.parameter = where(quadratic, target / quadratic, parameter), .slots = {accumulator, linear}};
}

}  // namespace holdfast
