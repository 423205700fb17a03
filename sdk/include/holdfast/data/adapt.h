#pragma once

// Fits a Normalization to a data set before the model is made:
//
//   const Normalization normalization = adapt(Normalization{}, train);
//   Sequential model{Input{28, 28, 1}, normalization, Conv2D{16, 3}};

#include <cstdint>

#include "holdfast/data/dataset.h"
#include "holdfast/nn/normalization.h"

namespace holdfast {

// The layer with mean and variance of the features of all samples of epoch 0, in their order. Draws of map() are those
// of the seed. Throws Error{invalid_argument} as Normalization::adapt() does; exceptions are those of Dataset::load().
Normalization adapt(const Normalization& layer, const Dataset& data, std::uint64_t seed = 0);

}  // namespace holdfast
