#pragma once

#include "holdfast/core/tensor.h"

namespace holdfast {

// Throws Error{invalid_argument} unless these can be weights of samples: f32, finite, from 0 on, at
// least one for a sample.
void check_sample_weights(const Tensor& weights);

}  // namespace holdfast
