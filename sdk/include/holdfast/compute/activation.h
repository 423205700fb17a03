#pragma once

// The activation functions of layers, with the names and formulas of Keras. Layers take one as an
// option: Dense{128, {.activation = Activation::relu}}. ActivationFunction has these and those that need
// numbers, such as elu (holdfast/nn/activation_function.h). Losses check what the last layer has: see
// CrossentropyOptions::from_logits.

#include <string_view>

namespace holdfast {

// The element x of the output of a layer becomes:
enum class Activation {
  linear,   // x
  relu,     // max(x, 0)
  tanh,     // tanh(x)
  sigmoid,  // 1 / (1 + exp(-x))
  softmax,  // exp(x_i) / sum over j of exp(x_j), along the last axis
  gelu,     // x / 2 * (1 + erf(x / sqrt(2)))    Hendrycks and Gimpel, 2016; not the tanh approximation
};

// The name in configurations and savepoints: "linear", "relu", ...
std::string_view name(Activation activation);
// The inverse of name(). Throws Error{invalid_argument} for any other text.
Activation activation_from_name(std::string_view name);

}  // namespace holdfast
