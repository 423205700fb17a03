#pragma once

// Names for the layers that were given none, as Keras chooses them.

#include <memory>
#include <string>
#include <vector>

#include "holdfast/nn/layer.h"

namespace holdfast {

// One name for each layer: its own, or its kind in snake_case, with a number from the second one on:
// "conv2d", "conv2d_1". Names that another layer has are skipped. Throws Error{invalid_argument} if two
// layers were given the same name.
std::vector<std::string> name_layers(const std::vector<std::shared_ptr<const Layer>>& layers);

}  // namespace holdfast
