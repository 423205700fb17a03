#pragma once

// Batch normalization of one element, for host and device. `inverse` is 1 / sqrt(variance + epsilon).

#include "core/host_device.h"

namespace holdfast::compute {

HOLDFAST_HOST_DEVICE inline float normalized(float input, float mean, float inverse) {
  return (input - mean) * inverse;
}

// The derivative of the loss by the input, where mean and variance are functions of all `rows` inputs of the channel
// (Ioffe and Szegedy, 2015).
struct NormalizationGradient {
  float mean;
  float inverse;
  float gamma;
  float gamma_gradient;  // sum of output_gradient * normalized input
  float beta_gradient;   // sum of output_gradient
  float rows;

  HOLDFAST_HOST_DEVICE float of(float input, float output_gradient) const {
    const float through_statistics = (beta_gradient + normalized(input, mean, inverse) * gamma_gradient) / rows;
    return gamma * inverse * (output_gradient - through_statistics);
  }
};

}  // namespace holdfast::compute
