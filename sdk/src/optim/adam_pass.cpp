#include "optim/adam_pass.h"

#include <cmath>

#include "holdfast/base/error.h"

namespace holdfast {

AdamFactors adam_factors(std::int64_t step, float learning_rate, float beta_1, float beta_2, float epsilon) {
  HOLDFAST_ASSERT(step >= 1);
  const double correction_1 = 1.0 - std::pow(static_cast<double>(beta_1), static_cast<double>(step));
  const double correction_2 = 1.0 - std::pow(static_cast<double>(beta_2), static_cast<double>(step));
  return {.beta_1_rest = 1.0F - beta_1,
          .beta_2_rest = 1.0F - beta_2,
          .rate = static_cast<float>(learning_rate * std::sqrt(correction_2) / correction_1),
          .epsilon = epsilon};
}

void adam_pass(const AdamFactors& factors, float kept, std::span<float> parameters, std::span<const float> gradients,
               std::span<const std::span<float>> slots) {
  const std::size_t count = parameters.size();
  HOLDFAST_ASSERT(slots.size() == 2 && gradients.size() == count && slots[0].size() == count &&
                  slots[1].size() == count);
  // Not a structured binding: clang 14 takes none into a loop of OpenMP.
  const float beta_1_rest = factors.beta_1_rest;
  const float beta_2_rest = factors.beta_2_rest;
  const float rate = factors.rate;
  const float epsilon = factors.epsilon;
  float* const __restrict parameter = parameters.data();
  const float* const __restrict gradient = gradients.data();
  float* const __restrict m = slots[0].data();
  float* const __restrict v = slots[1].data();
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    m[i] += (gradient[i] - m[i]) * beta_1_rest;
    v[i] += (gradient[i] * gradient[i] - v[i]) * beta_2_rest;
    parameter[i] = parameter[i] * kept - m[i] * rate / (std::sqrt(v[i]) + epsilon);
  }
}

}  // namespace holdfast
