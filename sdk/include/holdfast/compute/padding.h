#pragma once

// What a sliding window does at the borders of its input, as Keras means it.

#include <string_view>

namespace holdfast {

enum class Padding {
  valid,  // windows lie inside the input; what no whole window fits on is left over
  same,   // ceil(extent / stride) windows; the missing border is split in two, the odd element goes behind
};

// "valid", "same".
std::string_view name(Padding padding);
// Throws Error{invalid_argument} for a name that no padding has.
Padding padding_from_name(std::string_view name);

}  // namespace holdfast
