// The arithmetic of one element is shared by the host's loops and the CUDA kernels, so both compute the same bits
// (compute/arithmetic/optimizers.h). The velocity contains the learning rate, as in Keras. In PyTorch it does not, so
// the two differ after a change of the rate.

#include "holdfast/optim/sgd.h"

#include <typeinfo>

#include "core/json_object.h"
#include "holdfast/base/error.h"
#include "optim/check_option.h"
#include "optim/clipping_options.h"
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

SGD::SGD(const SGDOptions& options) : options_(options) {
  check_learning_rate(name(), options.learning_rate);
  check_option(name(), "momentum", options.momentum, options.momentum >= 0 && options.momentum <= 1, "in [0, 1]");
  check_clipping(name(), clipping());
}

std::string SGD::configuration() const {
  JsonObject object("sgd");
  object.value("learning_rate", options_.learning_rate.configuration())
      .number("momentum", options_.momentum)
      .boolean("nesterov", options_.nesterov);
  add_clipping(object, clipping());
  return object.text();
}

std::unique_ptr<Optimizer> SGD::with_learning_rate(const LearningRate& rate) const {
  return with_rate<SGD>(options_, rate);
}

GradientClipping SGD::clipping() const {
  return clipping_of(options_);
}

// Without momentum there is no slot, so there is nothing to mirror and to save.
std::vector<std::string> SGD::slot_names() const {
  return options_.momentum > 0 ? std::vector<std::string>{"momentum"} : std::vector<std::string>{};
}

void SGD::update(std::int64_t step, std::span<float> parameters, std::span<const float> gradients,
                 std::span<const std::span<float>> slots) const {
  run_pass({sgd_step(step, options_)}, {parameters, gradients, slots});
}

std::shared_ptr<const UpdatePass> SGD::pass(std::int64_t step) const {
  // A class that derives from this one may have another update().
  if (typeid(*this) != typeid(SGD)) return nullptr;
  return std::make_shared<UpdatePass>(UpdatePass{sgd_step(step, options_)});
}

}  // namespace holdfast
