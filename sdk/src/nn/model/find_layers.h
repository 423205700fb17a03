#pragma once

// Finds layers of a model by name.

#include <string_view>
#include <vector>

#include "nn/model/description.h"

namespace holdfast {

// Throws Error{not_found} that says which layers have names close to `wanted`.
[[noreturn]] void refuse_layer(const ModelDescription& model, std::string_view wanted);

// For each layer, whether its name matches the pattern (core/name_pattern.h). Throws Error{not_found} if none does.
std::vector<bool> matching_layers(const ModelDescription& model, std::string_view pattern);

}  // namespace holdfast
