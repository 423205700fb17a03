#pragma once

// What Holdfast has for a function of keras.ops.

#include <string>
#include <vector>

#include "keras_layers/keras_layer_reader.h"

namespace holdfast::format {

// Throws Error{unsupported} with the function's name for one that has no counterpart.
std::vector<HoldfastStep> steps_of_keras_function(const KerasCall& call, std::vector<std::string>& notes);

}  // namespace holdfast::format
