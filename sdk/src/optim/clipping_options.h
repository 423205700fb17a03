#pragma once

// The options of gradient clipping that all our optimizers have.

#include <string>

#include "holdfast/optim/gradient_clipping.h"

namespace holdfast {

template <class Options>
GradientClipping clipping_of(const Options& options) {
  return {.value = options.clip_value, .norm = options.clip_norm, .global_norm = options.global_clip_norm};
}

// Throws Error{invalid_argument} for more than one, or one that is not positive.
void check_clipping(const std::string& optimizer, const GradientClipping& clipping);

// For the end of a JSON object: ,"clip_norm":1 or nothing.
std::string clipping_members(const GradientClipping& clipping);

}  // namespace holdfast
