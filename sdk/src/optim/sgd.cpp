// The arithmetic of one element is shared by the host's loops and the CUDA kernels, so both compute the same bits
// (compute/arithmetic/optimizers.h). The velocity contains the learning rate, as in Keras. In PyTorch it does not, so
// the two differ after a change of the rate. docs/decisions/optimizers.md

#include "holdfast/optim/sgd.h"

#include <typeinfo>

#include "core/json_object.h"
#include "holdfast/base/error.h"
#include "holdfast/optim/described_optimizer.h"
#include "optim/check_option.h"
#include "optim/clipping_options.h"
#include "optim/rule_options.h"
#include "optim/update_pass.h"

namespace holdfast {
namespace {

compute::SgdStep sgd_step(std::int64_t step, const SGDOptions& options) {
  HOLDFAST_ASSERT(step >= 1);
  return {.learning_rate = options.learning_rate.of_update(step),
          .momentum = options.momentum,
          .nesterov = options.nesterov};
}

}  // namespace

// The same rules with decay. The loops of SGD know none, so that they stay the fastest, and element programs run on all
// back ends.
class SGD::Decaying final : public DescribedOptimizer {
 public:
  explicit Decaying(const SGDOptions& options) : options_(options) {}

  std::string name() const override { return "sgd"; }
  // Only the SGD that it belongs to is asked for one.
  std::string configuration() const override { return "{}"; }
  std::unique_ptr<Optimizer> clone() const override { return std::make_unique<Decaying>(*this); }
  std::vector<std::string> slot_names() const override {
    return options_.momentum > 0 ? std::vector<std::string>{"momentum"} : std::vector<std::string>{};
  }

 protected:
  std::vector<double> numbers(std::int64_t step) const override {
    const double rate = options_.learning_rate.of_update(step);
    return {rate, kept_of(options_.weight_decay, rate)};
  }
  Updated describe(const Elements& of) const override {
    const Value kept = of.parameter * of.numbers[1];
    const Value change = of.gradient * of.numbers[0];
    if (of.slots.empty()) return {.parameter = kept - change, .slots = {}};
    const Value velocity = of.slots[0] * options_.momentum - change;
    if (!options_.nesterov) return {.parameter = kept + velocity, .slots = {velocity}};
    return {.parameter = kept + (velocity * options_.momentum - change), .slots = {velocity}};
  }

 private:
  SGDOptions options_;
};

SGD::SGD(const SGDOptions& options) : options_(options) {
  check_learning_rate(name(), options.learning_rate);
  check_option(name(), "momentum", options.momentum, options.momentum >= 0 && options.momentum <= 1, "in [0, 1]");
  check_option(name(), "weight_decay", options.weight_decay, options.weight_decay >= 0, "not negative");
  check_clipping(name(), clipping());
  check_rules(name(), parameter_rules());
  check_average(name(), weight_average());
  // Without decay, update() and pass() use the loops of SGD.
  if (options.weight_decay > 0) decaying_ = std::make_shared<const Decaying>(options);
}

std::string SGD::configuration() const {
  JsonObject object("sgd");
  object.value("learning_rate", options_.learning_rate.configuration())
      .number("momentum", options_.momentum)
      .boolean("nesterov", options_.nesterov);
  // Configurations of runs without decay keep the text that they had before there was any.
  if (options_.weight_decay > 0) object.number("weight_decay", options_.weight_decay);
  add_clipping(object, clipping());
  add_rules(object, parameter_rules());
  add_average(object, weight_average());
  return object.text();
}

std::unique_ptr<Optimizer> SGD::with_learning_rate(const LearningRate& rate) const {
  return with_rate<SGD>(options_, rate);
}

GradientClipping SGD::clipping() const {
  return clipping_of(options_);
}

ParameterRules SGD::parameter_rules() const {
  return rules_of(options_);
}

WeightAverage SGD::weight_average() const {
  return average_of(options_);
}

std::unique_ptr<Optimizer> SGD::with_weight_decay_times(float factor) const {
  return with_decay_times<SGD>(options_, factor);
}

// Without momentum there is no slot, so there is nothing to mirror and to save.
std::vector<std::string> SGD::slot_names() const {
  return options_.momentum > 0 ? std::vector<std::string>{"momentum"} : std::vector<std::string>{};
}

void SGD::update(std::int64_t step, std::span<float> parameters, std::span<const float> gradients,
                 std::span<const std::span<float>> slots) const {
  if (decaying_) return decaying_->update(step, parameters, gradients, slots);
  run_pass({sgd_step(step, options_)}, {parameters, gradients, slots});
}

std::shared_ptr<const UpdatePass> SGD::pass(std::int64_t step) const {
  // A class that derives from this one may have another update().
  if (typeid(*this) != typeid(SGD)) return nullptr;
  if (decaying_) return decaying_->pass(step);
  return std::make_shared<UpdatePass>(UpdatePass{sgd_step(step, options_)});
}

}  // namespace holdfast
