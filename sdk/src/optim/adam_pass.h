#pragma once

// The pass over memory that Adam and AdamW share.

#include <cstdint>
#include <span>

namespace holdfast {

struct AdamFactors {
  float beta_1_rest;  // 1 - beta_1
  float beta_2_rest;  // 1 - beta_2
  float rate;         // lr sqrt(1 - beta_2^t) / (1 - beta_1^t)
  float epsilon;
};

// The powers are taken in double: in float 1 - 0.999^t loses half its digits at the first steps. Asserts step >= 1.
AdamFactors adam_factors(std::int64_t step, float learning_rate, float beta_1, float beta_2, float epsilon);

// `kept` is what is left of a parameter before its step: 1 for Adam. `slots` are m and v.
void adam_pass(const AdamFactors& factors, float kept, std::span<float> parameters, std::span<const float> gradients,
               std::span<const std::span<float>> slots);

}  // namespace holdfast
