#pragma once

// Moves weights between models by name. So a weight finds its place wherever the layouts have it: the parameters of a
// frozen layer lie in the arena of buffers.

#include <string>

#include "holdfast/nn/model.h"
#include "nn/model/model_weights.h"

namespace holdfast {

// The weights in the layouts of `to`, which has the names of `from`, or some of them. Asserts it.
ModelWeights::Values weights_by_name(const Model& to, const Model& from, std::span<const float> parameters,
                                     std::span<const float> buffers);

// Gives `to` a copy of the weights of `from` if there are any.
void copy_weights(const Model& from, Model& to);

}  // namespace holdfast
