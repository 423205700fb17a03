#pragma once

// The pass over memory that Adam and AdamW share.

#include <cstdint>
#include <span>

#include "compute/device_kernels.h"

namespace holdfast {

// The options of one step.
struct AdamRates {
  float learning_rate = 0;
  float beta_1 = 0;
  float beta_2 = 0;
  float epsilon = 0;
  float kept = 1;  // factor of a parameter before the step: 1 - weight_decay * learning_rate
};

// Computes the scalars of step `step`. Powers are taken in double: in float, 1 - 0.999^t loses half its
// digits at the first steps. Asserts step >= 1.
compute::AdamStep adam_step(std::int64_t step, const AdamRates& rates);

// Update `parameters` and the slots, which are m and v, on the host and on a device. Assert that all
// have one length.
void adam_pass(const compute::AdamStep& step, std::span<float> parameters, std::span<const float> gradients,
               std::span<const std::span<float>> slots);
void adam_pass_on(compute::DeviceKernels& device, const compute::AdamStep& step, std::span<float> parameters,
                  std::span<const float> gradients, std::span<const std::span<float>> slots);

}  // namespace holdfast
