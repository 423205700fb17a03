#pragma once

// The numbers of a step that Adam and AdamW share.

#include <cstdint>

#include <memory>

#include "compute/device_kernels.h"
#include "optim/update_pass.h"

namespace holdfast {

// The options of one step.
struct AdamRates {
  float learning_rate = 0;
  float beta_1 = 0;
  float beta_2 = 0;
  float epsilon = 0;
  float kept = 1;  // factor of a parameter before the step: 1 - weight_decay * learning_rate
};

// The factor of a parameter before a step. The decay acts on the parameter itself, at the rate of the step, and never
// enters m or v (Loshchilov and Hutter, 2019, algorithm 2). It is computed in double and rounded once.
inline float kept_after_decay(float weight_decay, float learning_rate) {
  return static_cast<float>(1.0 - static_cast<double>(weight_decay) * learning_rate);
}

// Computes the scalars of step `step`. Powers are taken in double: in float, 1 - 0.999^t loses half its
// digits at the first steps. Asserts step >= 1.
compute::AdamStep adam_step(std::int64_t step, const AdamRates& rates);

// The pass of an Adam with amsgrad, which has three slots. Only the betas and epsilon of `rates` count.
std::shared_ptr<const UpdatePass> amsgrad_pass(const AdamRates& rates);
// The same with the numbers of step `step`.
UpdatePass amsgrad_step(const UpdatePass& pass, std::int64_t step, const AdamRates& rates);

}  // namespace holdfast
