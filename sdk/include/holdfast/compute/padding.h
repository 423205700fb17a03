#pragma once

// How a sliding window treats the borders of its input, as in Keras. Convolution and pooling take it.

#include <string_view>

namespace holdfast {

// Along each axis, with windows of `size` elements every `stride` elements:
enum class Padding {
  valid,  // windows lie inside the input; what no whole window fits on is left over
  same,   // ceil(extent / stride) windows; the padding is split in two, and an odd element goes to the end
  // As many windows, with all padding before the first element. So no output depends on later elements (van den Oord et
  // al., "WaveNet", 2016). For convolutions along one axis only.
  causal,
};

// The name in configurations and savepoints: "valid", "same" or "causal".
std::string_view name(Padding padding);
// The inverse of name(). Throws Error{invalid_argument} for any other text.
Padding padding_from_name(std::string_view name);

}  // namespace holdfast
