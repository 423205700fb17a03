#pragma once

// The activation functions of layers, named as Keras names them.

#include <string_view>

namespace holdfast {

enum class Activation {
  linear,   // x
  relu,     // max(x, 0)
  tanh,     //
  sigmoid,  // 1 / (1 + exp(-x))
  softmax,  // exp(x_i) / sum over j of exp(x_j), along the last axis
  gelu,     // x / 2 * (1 + erf(x / sqrt(2)))    Hendrycks and Gimpel, 2016; not the tanh approximation
};

// "linear", "relu", ...
std::string_view name(Activation activation);
// Throws Error{invalid_argument} for a name that no activation has.
Activation activation_from_name(std::string_view name);

}  // namespace holdfast
