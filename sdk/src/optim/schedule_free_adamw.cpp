// z begins as a copy of the parameters. The first step takes the parameters in its place, so the slot needs no
// beginning of its own, and weights that are loaded before that step count.

#include "holdfast/optim/schedule_free_adamw.h"

#include <algorithm>
#include <cmath>

#include "core/json_object.h"
#include "optim/clipping_options.h"
#include "optim/rule_options.h"

namespace holdfast {

// A beta_1 of 0 passes, because no formula below divides by it. The average x has no slot: it follows from y and z.
ScheduleFreeAdamW::ScheduleFreeAdamW(const ScheduleFreeAdamWOptions& options) : options_(options) {
  check_moment_options(name(), options);
  check_count(name(), "warmup_steps", options.warmup_steps, 0);
}

// A savepoint holds this text, and a resume compares it. So its members and their order are data.
std::string ScheduleFreeAdamW::configuration() const {
  JsonObject object(name());
  object.value("learning_rate", options_.learning_rate.configuration())
      .number("beta_1", options_.beta_1)
      .number("beta_2", options_.beta_2)
      .number("epsilon", options_.epsilon)
      .integer("warmup_steps", options_.warmup_steps)
      .number("weight_decay", options_.weight_decay);
  add_clipping(object, clipping());
  add_rules(object, parameter_rules());
  add_average(object, weight_average());
  return object.text();
}

std::unique_ptr<Optimizer> ScheduleFreeAdamW::with_learning_rate(const LearningRate& rate) const {
  return with_rate<ScheduleFreeAdamW>(options_, rate);
}

GradientClipping ScheduleFreeAdamW::clipping() const {
  return clipping_of(options_);
}

ParameterRules ScheduleFreeAdamW::parameter_rules() const {
  return rules_of(options_);
}

WeightAverage ScheduleFreeAdamW::weight_average() const {
  return average_of(options_);
}

std::unique_ptr<Optimizer> ScheduleFreeAdamW::with_weight_decay_times(float factor) const {
  return with_decay_times<ScheduleFreeAdamW>(options_, factor);
}

std::vector<std::string> ScheduleFreeAdamW::slot_names() const {
  return {"momentum", "velocity"};
}

std::vector<double> ScheduleFreeAdamW::numbers(std::int64_t step) const {
  const double rate = options_.learning_rate.of_update(step);
  const auto t = static_cast<double>(step);
  const double warm = options_.warmup_steps > 0 ? std::min(1.0, t / static_cast<double>(options_.warmup_steps)) : 1.0;
  const double beta_1 = options_.beta_1;
  const double correction = 1.0 - std::pow(static_cast<double>(options_.beta_2), t);
  // With x = (y - (1 - beta_1) z) / beta_1, the new y is (1 - beta_1 + beta_1 / t) z' + (1 - 1/t) (y - (1 - beta_1) z).
  return {rate * warm, 1.0 / correction, 1.0 - beta_1 + beta_1 / t, 1.0 - 1.0 / t,
          kept_of(options_.weight_decay, rate)};
}

DescribedOptimizer::Updated ScheduleFreeAdamW::describe(const Elements& of) const {
  // In the first step the weight of the old x is 0, which tells that z is not there yet.
  const Value& weight = of.numbers[3];
  const Value momentum = where(weight, of.slots[0], of.parameter);
  const Value velocity = of.slots[1] + (square(of.gradient) - of.slots[1]) * (1.0F - options_.beta_2);
  const Value denominator = square_root(velocity * of.numbers[1]) + options_.epsilon;
  const Value moved = momentum - of.gradient * of.numbers[0] / denominator;
  const Value parameter = decayed(of.parameter, of.numbers[4], options_.weight_decay);
  const Value rest = (parameter - momentum * (1.0F - options_.beta_1)) * weight;
  // `moved` is the new z, and `rest` is what stays of the average x.
  return {.parameter = moved * of.numbers[2] + rest, .slots = {moved, velocity}};
}

}  // namespace holdfast
