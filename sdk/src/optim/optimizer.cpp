// An optimizer of an application may know no more than update(). See update_pass.h for what a device does with it.

#include "holdfast/optim/optimizer.h"

namespace holdfast {

float Optimizer::initial_value_of_slot(std::size_t) const {
  return 0;
}

void Optimizer::update_array(const ParameterArray&, std::int64_t step, std::span<float> parameters,
                             std::span<const float> gradients, std::span<const std::span<float>> slots) const {
  update(step, parameters, gradients, slots);
}

// The defaults below say "not supported" without an exception. Callers turn that into a sentence for the user, or take
// the slower way.
std::optional<LearningRate> Optimizer::learning_rate() const {
  return std::nullopt;
}

std::unique_ptr<Optimizer> Optimizer::with_learning_rate(const LearningRate&) const {
  return nullptr;
}

std::shared_ptr<const UpdatePass> Optimizer::pass(std::int64_t) const {
  return nullptr;
}

}  // namespace holdfast
