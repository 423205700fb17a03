#pragma once

// Checks of the options that models of language share.

#include <cstdint>
#include <string>
#include <string_view>

#include "holdfast/nn/value.h"

namespace holdfast {

// Throws Error{invalid_argument} unless the width is a multiple of the heads. Names widths near it that are.
void check_heads(std::string_view model, std::int64_t width, std::int64_t heads);

// With dropout as a layer of that name, or without one where the rate is 0.
Value dropped_out(const Value& x, float rate, const std::string& name);

}  // namespace holdfast
