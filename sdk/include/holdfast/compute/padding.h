#pragma once

// How a sliding window treats the borders of its input, as in Keras. Convolution and pooling take it.

#include <string_view>

namespace holdfast {

// Along each axis, with windows of `size` elements every `stride` elements:
enum class Padding {
  valid,  // windows lie inside the input; what no whole window fits on is left over
  same,   // ceil(extent / stride) windows; the padding is split in two, and an odd element goes to the end
};

// The name in configurations and savepoints: "valid" or "same".
std::string_view name(Padding padding);
// The inverse of name(). Throws Error{invalid_argument} for any other text.
Padding padding_from_name(std::string_view name);

}  // namespace holdfast
