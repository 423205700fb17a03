#pragma once

// Activation functions of one element and their derivatives, for host and device. The argument of `derivative` is the
// output, or the input of functions that rise and fall (is_differentiated_by_output()).
//
// Formulas that are long chains of operations have two parts: value(x) is late_value(x, early(x)). A loop for each part
// is faster than one for both, because a processor looks ahead over a limited number of instructions.

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

  HOLDFAST_HOST_DEVICE static float early(float x) { return error_exponent(x * kRootOfHalf); }
  HOLDFAST_HOST_DEVICE static float late_value(float x, float exponent) {
    return x / 2 * (1 + error_of(x * kRootOfHalf, exponent));
  }
  HOLDFAST_HOST_DEVICE static float late_derivative(float input, float exponent) {
    const float distribution = (1 + error_of(input * kRootOfHalf, exponent)) / 2;
    return distribution + input * kDensityAtZero * exponential_of_negative(-input * input / 2);
  }
  HOLDFAST_HOST_DEVICE static float value(float x) { return late_value(x, early(x)); }
  HOLDFAST_HOST_DEVICE static float derivative(float input) { return late_derivative(input, early(input)); }
};

// The approximation of GELU by tanh: sqrt(2 / pi) and 0.044715 are those of Hendrycks and Gimpel, 2016.
struct GeluTanh {
  static constexpr float kRoot = 0.79788456080286536F;
  static constexpr float kCubic = 0.044715F;

  HOLDFAST_HOST_DEVICE static float argument(float x) { return kRoot * (x + kCubic * x * x * x); }
  HOLDFAST_HOST_DEVICE static float value(float x) { return x / 2 * (1 + hyperbolic_tangent(argument(x))); }
  // By the chain rule, with t' = (1 - t^2) times the derivative of its argument.
  HOLDFAST_HOST_DEVICE static float derivative(float input) {
    const float t = hyperbolic_tangent(argument(input));
    return 0.5F * (1 + t) + 0.5F * input * (1 - t * t) * kRoot * (1 + 3 * kCubic * input * input);
  }
};

struct Silu {
  HOLDFAST_HOST_DEVICE static float value(float x) { return x * Sigmoid::value(x); }
  // With s = sigmoid(x): the derivative of x s is s + x s (1 - s).
  HOLDFAST_HOST_DEVICE static float derivative(float input) {
    const float s = Sigmoid::value(input);
    return s * (1 + input * (1 - s));
  }
};

}  // namespace holdfast::compute
