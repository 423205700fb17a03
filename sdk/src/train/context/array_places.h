#pragma once

// Which arrays of a sample a model takes.

#include <cstddef>
#include <span>
#include <vector>

#include "holdfast/core/row_layout.h"
#include "holdfast/nn/model.h"

namespace holdfast {

// For each array of the model, the place among those of a sample: that of its name, if the sample has each name of the
// model once and no other name. Otherwise arrays are taken in their order. `places` is written anew.
void find_array_places(std::span<const ArraySpec> of_sample, std::span<const ModelArray> of_model,
                       std::vector<std::size_t>& places);

}  // namespace holdfast
