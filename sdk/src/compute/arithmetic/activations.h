#pragma once

// Activation functions of one element and their derivatives, for host and device. The argument of `derivative` is the
// output or the input, as is_differentiated_by_output() says.

#include "compute/arithmetic/exponential.h"
#include "core/host_device.h"

namespace holdfast::compute {

struct Relu {
  // A NaN stays a NaN, so that it is found.
  HOLDFAST_HOST_DEVICE static float value(float x) { return x < 0 ? 0.0F : x; }
  HOLDFAST_HOST_DEVICE static float derivative(float output) { return output > 0 ? 1.0F : 0.0F; }
};

struct Tanh {
  HOLDFAST_HOST_DEVICE static float value(float x) { return hyperbolic_tangent(x); }
  HOLDFAST_HOST_DEVICE static float derivative(float output) { return (1 - output) * (1 + output); }
};

struct Sigmoid {
  HOLDFAST_HOST_DEVICE static float value(float x) { return 1 / one_plus_exponential(-x); }
  HOLDFAST_HOST_DEVICE static float derivative(float output) { return output * (1 - output); }
};

struct Gelu {
  static constexpr float kRootOfHalf = 0.70710678118654752F;     // sqrt(1 / 2)
  static constexpr float kDensityAtZero = 0.39894228040143268F;  // 1 / sqrt(2 pi)

  HOLDFAST_HOST_DEVICE static float value(float x) { return x / 2 * (1 + error_function(x * kRootOfHalf)); }
  HOLDFAST_HOST_DEVICE static float derivative(float input) {
    const float distribution = (1 + error_function(input * kRootOfHalf)) / 2;
    return distribution + input * kDensityAtZero * exponential_of_negative(-input * input / 2);
  }
};

}  // namespace holdfast::compute
