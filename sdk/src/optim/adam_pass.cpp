// Adam and AdamW update parameters and both slots in one pass over memory. The scalars of a step are
// computed once, in double, on the host, so every device gets the same floats. See
// docs/decisions/training.md.

#include "optim/adam_pass.h"

#include <cmath>

#include "compute/cpu/kernels/vector_kernels.h"
#include "holdfast/base/error.h"

namespace holdfast {

compute::AdamStep adam_step(std::int64_t step, const AdamRates& rates) {
  HOLDFAST_ASSERT(step >= 1);
  const double correction_1 = 1.0 - std::pow(static_cast<double>(rates.beta_1), static_cast<double>(step));
  const double correction_2 = 1.0 - std::pow(static_cast<double>(rates.beta_2), static_cast<double>(step));
  // Both bias corrections are folded into the rate (Kingma and Ba, 2015, end of section 2). So
  // epsilon is added to a root that is not corrected, as in Keras.
  return {.beta_1_rest = 1.0F - rates.beta_1,
          .beta_2_rest = 1.0F - rates.beta_2,
          .rate = static_cast<float>(rates.learning_rate * std::sqrt(correction_2) / correction_1),
          .epsilon = rates.epsilon,
          .kept = rates.kept};
}

static void require_one_length(std::span<float> parameters, std::span<const float> gradients,
                               std::span<const std::span<float>> slots) {
  const std::size_t count = parameters.size();
  HOLDFAST_ASSERT(slots.size() == 2 && gradients.size() == count && slots[0].size() == count &&
                  slots[1].size() == count);
}

void adam_pass(const compute::AdamStep& step, std::span<float> parameters, std::span<const float> gradients,
               std::span<const std::span<float>> slots) {
  require_one_length(parameters, gradients, slots);
  compute::vector_kernels().adam(step, static_cast<std::int64_t>(parameters.size()), gradients.data(),
                                 parameters.data(), slots[0].data(), slots[1].data());
}

void adam_pass_on(compute::DeviceKernels& device, const compute::AdamStep& step, std::span<float> parameters,
                  std::span<const float> gradients, std::span<const std::span<float>> slots) {
  require_one_length(parameters, gradients, slots);
  device.adam(step, parameters.size(), parameters.data(), gradients.data(), slots[0].data(), slots[1].data());
}

}  // namespace holdfast
