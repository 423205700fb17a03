// Adam and AdamW update parameters and both slots in one pass over memory. The scalars of a step are
// computed once, in double, on the host, so every device gets the same floats. See
// docs/decisions/training.md.

#include "optim/adam_pass.h"

#include <cmath>

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

}  // namespace holdfast
