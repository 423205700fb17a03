// The direction of a step is computed twice from the new slots, once for its norm and once for the step itself. So it
// needs no array of its own. Parameters decay in both passes and are written in the second one alone: a pass over
// memory takes as long as what it moves.

#include "holdfast/optim/lamb.h"

#include <cmath>

#include "compute/cpu/kernels/vector_kernels.h"
#include "holdfast/base/error.h"
#include "optim/rule_options.h"

namespace holdfast {
namespace {

double corrected(float beta, std::int64_t step) {
  return 1.0 / (1.0 - std::pow(static_cast<double>(beta), static_cast<double>(step)));
}

}  // namespace

Lamb::Lamb(const LambOptions& options) : options_(options) {
  check_moment_options(name(), options);
}

std::string Lamb::configuration() const {
  return moment_configuration(name(), options_);
}

std::unique_ptr<Optimizer> Lamb::with_learning_rate(const LearningRate& rate) const {
  return with_rate<Lamb>(options_, rate);
}

GradientClipping Lamb::clipping() const {
  return clipping_of(options_);
}

ParameterRules Lamb::parameter_rules() const {
  return rules_of(options_);
}

WeightAverage Lamb::weight_average() const {
  return average_of(options_);
}

std::unique_ptr<Optimizer> Lamb::with_weight_decay_times(float factor) const {
  return with_decay_times<Lamb>(options_, factor);
}

std::vector<std::string> Lamb::slot_names() const {
  return {"momentum", "velocity"};
}

void Lamb::update(std::int64_t step, std::span<float> parameters, std::span<const float> gradients,
                  std::span<const std::span<float>> slots) const {
  HOLDFAST_ASSERT(step >= 1 && slots.size() == 2 && gradients.size() == parameters.size());
  HOLDFAST_ASSERT(slots[0].size() == parameters.size() && slots[1].size() == parameters.size());
  const double rate = options_.learning_rate.of_update(step);
  const compute::LambStep numbers{.beta_1_rest = 1.0F - options_.beta_1,
                                  .beta_2_rest = 1.0F - options_.beta_2,
                                  .momentum_correction = static_cast<float>(corrected(options_.beta_1, step)),
                                  .velocity_correction = static_cast<float>(corrected(options_.beta_2, step)),
                                  .epsilon = options_.epsilon,
                                  .kept = static_cast<float>(kept_of(options_.weight_decay, rate))};
  const auto count = static_cast<std::int64_t>(parameters.size());
  const compute::VectorKernels& kernels = compute::vector_kernels();
  const compute::LambSums sums =
      kernels.lamb_slots(numbers, count, gradients.data(), parameters.data(), slots[0].data(), slots[1].data());
  // Where one of the norms is 0, the step is that of the learning rate alone.
  const double ratio = sums.parameters > 0 && sums.directions > 0 ? std::sqrt(sums.parameters / sums.directions) : 1.0;
  kernels.lamb_parameters(numbers, static_cast<float>(rate * ratio), count, slots[0].data(), slots[1].data(),
                          parameters.data());
}

}  // namespace holdfast
