// Adam as Kingma and Ba describe it, with Keras's place of epsilon. adam_pass.cpp has the arithmetic, which AdamW
// shares.

#include "holdfast/optim/adam.h"

#include <typeinfo>

#include "core/json_object.h"
#include "optim/adam_pass.h"
#include "optim/check_option.h"
#include "optim/clipping_options.h"
#include "optim/update_pass.h"

namespace holdfast {

static AdamRates rates_of(const AdamOptions& options, std::int64_t step) {
  const float learning_rate = options.learning_rate.of_update(step);
  return {.learning_rate = learning_rate,
          .beta_1 = options.beta_1,
          .beta_2 = options.beta_2,
          .epsilon = options.epsilon,
          .kept = kept_after_decay(options.weight_decay, learning_rate)};
}

Adam::Adam(const AdamOptions& options) : options_(options) {
  check_learning_rate(name(), options.learning_rate);
  // A beta of 1 would make a bias correction 0. Without an epsilon, an element that never had a
  // gradient would become 0 / 0.
  check_option(name(), "beta_1", options.beta_1, options.beta_1 >= 0 && options.beta_1 < 1, "in [0, 1)");
  check_option(name(), "beta_2", options.beta_2, options.beta_2 >= 0 && options.beta_2 < 1, "in [0, 1)");
  check_option(name(), "epsilon", options.epsilon, options.epsilon > 0, "positive");
  check_option(name(), "weight_decay", options.weight_decay, options.weight_decay >= 0, "not negative");
  check_clipping(name(), clipping());
  check_rules(name(), parameter_rules());
  check_average(name(), weight_average());
  if (options.amsgrad) {
    amsgrad_ = amsgrad_pass({.beta_1 = options.beta_1, .beta_2 = options.beta_2, .epsilon = options.epsilon});
  }
}

// A savepoint holds this text, and a resume compares it. So its members and their order are data.
std::string Adam::configuration() const {
  JsonObject object("adam");
  object.value("learning_rate", options_.learning_rate.configuration())
      .number("beta_1", options_.beta_1)
      .number("beta_2", options_.beta_2)
      .number("epsilon", options_.epsilon);
  // Configurations of runs without decay keep the text that they had before there was any.
  if (options_.weight_decay > 0) object.number("weight_decay", options_.weight_decay);
  if (options_.amsgrad) object.boolean("amsgrad", true);
  add_clipping(object, clipping());
  add_rules(object, parameter_rules());
  add_average(object, weight_average());
  return object.text();
}

std::unique_ptr<Optimizer> Adam::with_learning_rate(const LearningRate& rate) const {
  return with_rate<Adam>(options_, rate);
}

GradientClipping Adam::clipping() const {
  return clipping_of(options_);
}

ParameterRules Adam::parameter_rules() const {
  return rules_of(options_);
}

WeightAverage Adam::weight_average() const {
  return average_of(options_);
}

std::unique_ptr<Optimizer> Adam::with_weight_decay_times(float factor) const {
  return with_decay_times<Adam>(options_, factor);
}

std::vector<std::string> Adam::slot_names() const {
  // A slot takes memory and time, so it is there only if it is needed.
  if (options_.amsgrad) return {"m", "v", "v_hat"};
  return {"m", "v"};
}

// With amsgrad the pass is an element program, since the loops of Adam have no third slot.
UpdatePass Adam::pass_of(std::int64_t step) const {
  const AdamRates rates = rates_of(options_, step);
  return amsgrad_ ? amsgrad_step(*amsgrad_, step, rates) : UpdatePass{adam_step(step, rates)};
}

void Adam::update(std::int64_t step, std::span<float> parameters, std::span<const float> gradients,
                  std::span<const std::span<float>> slots) const {
  run_pass(pass_of(step), {parameters, gradients, slots});
}

std::shared_ptr<const UpdatePass> Adam::pass(std::int64_t step) const {
  // A class that derives from this one may have another update().
  if (typeid(*this) != typeid(Adam)) return nullptr;
  return std::make_shared<UpdatePass>(pass_of(step));
}

}  // namespace holdfast
