#pragma once

// The options of gradient clipping that all optimizers of Holdfast share. Each optimizer has them as
// members of its own options, so that a user sets them in one place.

#include <string>

#include "core/json_object.h"
#include "holdfast/optim/gradient_clipping.h"

namespace holdfast {

// The clipping that the options of an optimizer ask for.
template <class Options>
GradientClipping clipping_of(const Options& options) {
  return {.value = options.clip_value, .norm = options.clip_norm, .global_norm = options.global_clip_norm};
}

// Throws Error{invalid_argument} for more than one limit, or for a limit that is not positive.
void check_clipping(const std::string& optimizer, const GradientClipping& clipping);

// Appends the option that is set, if there is one: "clip_norm":1.
void add_clipping(JsonObject& configuration, const GradientClipping& clipping);

}  // namespace holdfast
