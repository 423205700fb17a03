// Adam with decoupled weight decay. The decay is a factor of the parameter, so the pass over memory is the same as
// Adam's.

#include "holdfast/optim/adamw.h"

#include <typeinfo>

#include "core/json_object.h"
#include "optim/adam_pass.h"
#include "optim/check_option.h"
#include "optim/clipping_options.h"
#include "optim/update_pass.h"

namespace holdfast {

static AdamRates rates_of(const AdamWOptions& options, std::int64_t step) {
  const float learning_rate = options.learning_rate.of_update(step);
  return {.learning_rate = learning_rate,
          .beta_1 = options.beta_1,
          .beta_2 = options.beta_2,
          .epsilon = options.epsilon,
          .kept = kept_after_decay(options.weight_decay, learning_rate)};
}

AdamW::AdamW(const AdamWOptions& options) : options_(options) {
  check_learning_rate(name(), options.learning_rate);
  // 0 makes it Adam, which is allowed: a search over decays may include it.
  check_option(name(), "weight_decay", options.weight_decay, options.weight_decay >= 0, "not negative");
  check_option(name(), "beta_1", options.beta_1, options.beta_1 >= 0 && options.beta_1 < 1, "in [0, 1)");
  check_option(name(), "beta_2", options.beta_2, options.beta_2 >= 0 && options.beta_2 < 1, "in [0, 1)");
  check_option(name(), "epsilon", options.epsilon, options.epsilon > 0, "positive");
  check_clipping(name(), clipping());
  check_rules(name(), parameter_rules());
  check_average(name(), weight_average());
  if (options.amsgrad) {
    // Made once: only its numbers change from step to step.
    amsgrad_ = amsgrad_pass({.beta_1 = options.beta_1, .beta_2 = options.beta_2, .epsilon = options.epsilon});
  }
}

std::string AdamW::configuration() const {
  JsonObject object("adamw");
  object.value("learning_rate", options_.learning_rate.configuration())
      .number("weight_decay", options_.weight_decay)
      .number("beta_1", options_.beta_1)
      .number("beta_2", options_.beta_2)
      .number("epsilon", options_.epsilon);
  // As all options that came later, it stands there only if it is set.
  if (options_.amsgrad) object.boolean("amsgrad", true);
  add_clipping(object, clipping());
  add_rules(object, parameter_rules());
  add_average(object, weight_average());
  return object.text();
}

std::unique_ptr<Optimizer> AdamW::with_learning_rate(const LearningRate& rate) const {
  return with_rate<AdamW>(options_, rate);
}

GradientClipping AdamW::clipping() const {
  return clipping_of(options_);
}

ParameterRules AdamW::parameter_rules() const {
  return rules_of(options_);
}

WeightAverage AdamW::weight_average() const {
  return average_of(options_);
}

std::unique_ptr<Optimizer> AdamW::with_weight_decay_times(float factor) const {
  return with_decay_times<AdamW>(options_, factor);
}

std::vector<std::string> AdamW::slot_names() const {
  // A slot takes memory and time, so it is there only if it is needed.
  if (options_.amsgrad) return {"m", "v", "v_hat"};
  return {"m", "v"};
}

// With amsgrad the pass is an element program, since the loops of Adam have no third slot.
UpdatePass AdamW::pass_of(std::int64_t step) const {
  const AdamRates rates = rates_of(options_, step);
  return amsgrad_ ? amsgrad_step(*amsgrad_, step, rates) : UpdatePass{adam_step(step, rates)};
}

void AdamW::update(std::int64_t step, std::span<float> parameters, std::span<const float> gradients,
                   std::span<const std::span<float>> slots) const {
  run_pass(pass_of(step), {parameters, gradients, slots});
}

std::shared_ptr<const UpdatePass> AdamW::pass(std::int64_t step) const {
  // A class that derives from this one may have another update().
  if (typeid(*this) != typeid(AdamW)) return nullptr;
  return std::make_shared<UpdatePass>(pass_of(step));
}

}  // namespace holdfast
