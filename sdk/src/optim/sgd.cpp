// Each of the three rules has a loop of its own without branches, which the compiler vectorizes. The
// arithmetic of one element is shared with the CUDA kernels, so host and device compute the same bits
// (compute/arithmetic/optimizers.h).

#include "holdfast/optim/sgd.h"

#include "compute/arithmetic/optimizers.h"
#include "compute/device_kernels.h"
#include "core/json_object.h"
#include "holdfast/base/error.h"
#include "optim/check_option.h"
#include "optim/clipping_options.h"

namespace holdfast {
namespace {

// Without a slot there is less memory to read and write.
void plain_pass(float rate, std::span<float> parameters, std::span<const float> gradients) {
  float* const __restrict parameter = parameters.data();
  const float* const __restrict gradient = gradients.data();
#pragma omp simd
  for (std::size_t i = 0; i < parameters.size(); ++i) compute::sgd_element(rate, gradient[i], parameter[i]);
}

// The velocity contains the learning rate, as in Keras. In PyTorch it does not, so the two differ
// after a change of the rate. The element is a template argument, so that each rule gets its own loop.
template <auto kElement>
void velocity_pass(const compute::SgdStep& step, std::span<float> parameters, std::span<const float> gradients,
                   std::span<float> velocities) {
  const float rate = step.learning_rate;
  const float momentum = step.momentum;
  float* const __restrict parameter = parameters.data();
  const float* const __restrict gradient = gradients.data();
  float* const __restrict velocity = velocities.data();
#pragma omp simd
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    kElement(rate, momentum, gradient[i], parameter[i], velocity[i]);
  }
}

// A schedule may change the rate, so it is asked at each step.
compute::SgdStep sgd_step(std::int64_t step, const SGDOptions& options) {
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

GradientClipping SGD::clipping() const {
  return clipping_of(options_);
}

// Without momentum there is no slot, so there is nothing to mirror and to save.
std::vector<std::string> SGD::slot_names() const {
  return options_.momentum > 0 ? std::vector<std::string>{"momentum"} : std::vector<std::string>{};
}

void SGD::update(std::int64_t step, std::span<float> parameters, std::span<const float> gradients,
                 std::span<const std::span<float>> slots) const {
  const bool has_momentum = options_.momentum > 0;
  HOLDFAST_ASSERT(step >= 1 && gradients.size() == parameters.size() && slots.size() == (has_momentum ? 1 : 0));
  const compute::SgdStep rates = sgd_step(step, options_);
  if (!has_momentum) return plain_pass(rates.learning_rate, parameters, gradients);
  HOLDFAST_ASSERT(slots[0].size() == parameters.size());
  const auto pass =
      options_.nesterov ? velocity_pass<compute::nesterov_element> : velocity_pass<compute::momentum_element>;
  pass(rates, parameters, gradients, slots[0]);
}

void SGD::update_on(compute::DeviceKernels& device, std::int64_t step, std::span<float> parameters,
                    std::span<const float> gradients, std::span<const std::span<float>> slots) const {
  const bool has_momentum = options_.momentum > 0;
  HOLDFAST_ASSERT(step >= 1 && gradients.size() == parameters.size() && slots.size() == (has_momentum ? 1 : 0));
  device.sgd(sgd_step(step, options_), parameters.size(), parameters.data(), gradients.data(),
             has_momentum ? slots[0].data() : nullptr);
}

}  // namespace holdfast
