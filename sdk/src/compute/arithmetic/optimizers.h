#pragma once

// The formulas of optimizers and moving averages for one element, for host and device.

#include "compute/arithmetic/float_bits.h"
#include "compute/device_kernels.h"
#include "core/host_device.h"

namespace holdfast::compute {

// Adam (Kingma and Ba, 2015) and, with `kept` below 1, AdamW (Loshchilov and Hutter, 2019).
HOLDFAST_HOST_DEVICE inline void adam_element(const AdamStep& step, float gradient, float& parameter, float& m,
                                              float& v) {
  m += (gradient - m) * step.beta_1_rest;
  v += (gradient * gradient - v) * step.beta_2_rest;
  parameter = parameter * step.kept - m * step.rate / (square_root(v) + step.epsilon);
}

HOLDFAST_HOST_DEVICE inline void sgd_element(float learning_rate, float gradient, float& parameter) {
  parameter -= learning_rate * gradient;
}

HOLDFAST_HOST_DEVICE inline void momentum_element(float learning_rate, float momentum, float gradient, float& parameter,
                                                  float& velocity) {
  velocity = velocity * momentum - learning_rate * gradient;
  parameter += velocity;
}

HOLDFAST_HOST_DEVICE inline void nesterov_element(float learning_rate, float momentum, float gradient, float& parameter,
                                                  float& velocity) {
  velocity = velocity * momentum - learning_rate * gradient;
  parameter += velocity * momentum - learning_rate * gradient;
}

// The slots of LAMB (You et al., 2020), and the direction of its step.
HOLDFAST_HOST_DEVICE inline void lamb_slots(const LambStep& step, float gradient, float& momentum, float& velocity) {
  momentum += (gradient - momentum) * step.beta_1_rest;
  velocity += (gradient * gradient - velocity) * step.beta_2_rest;
}

HOLDFAST_HOST_DEVICE inline float lamb_direction(const LambStep& step, float momentum, float velocity) {
  return momentum * step.momentum_correction / (square_root(velocity * step.velocity_correction) + step.epsilon);
}

// The moving average after a batch of `count` rows whose values add up to `sum`.
HOLDFAST_HOST_DEVICE inline float moving_average(float moving, float momentum, float sum, float count) {
  return moving * momentum + sum / count * (1 - momentum);
}

}  // namespace holdfast::compute
