#pragma once

// Names for the layers that got none, as Keras gives them.

#include <memory>
#include <string>
#include <vector>

#include "holdfast/nn/layer.h"

namespace holdfast {

// One name for each layer: its own, or its kind in snake_case and, from the second of a kind on, a number: "conv2d",
// "conv2d_1". Names that another layer bears are passed over. Throws Error{invalid_argument} when two layers have the
// same name of their own.
std::vector<std::string> name_layers(const std::vector<std::shared_ptr<const Layer>>& layers);

}  // namespace holdfast
