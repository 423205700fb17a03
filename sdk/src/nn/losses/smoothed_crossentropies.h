#pragma once

// Cross-entropies with smoothed targets, which the kernels of devices do not know.

#include <memory>

#include "holdfast/nn/crossentropy_options.h"
#include "holdfast/nn/value_loss.h"

namespace holdfast {

// Null without smoothing. Throw Error{invalid_argument} for a smoothing out of range.
std::shared_ptr<const ValueLoss> smoothed_binary_crossentropy(const CrossentropyOptions& options);
std::shared_ptr<const ValueLoss> smoothed_categorical_crossentropy(const CrossentropyOptions& options);

}  // namespace holdfast
