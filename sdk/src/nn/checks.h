#pragma once

// Checks of the arguments that several layers are constructed with.

#include <string_view>

#include "holdfast/nn/layer.h"

namespace holdfast {

// Throw Error{invalid_argument} naming layer class and option unless the value is in [1, Layer::kMaximumExtent].
void check_extent(std::string_view kind, std::string_view option, std::int64_t value);
void check_extent(std::string_view kind, std::string_view option, Extent2D value);

// Throws Error{invalid_argument} unless `input` is [height, width, channels].
void check_image(const Shape& input);

// Throws Error{invalid_argument} saying that a window of `size` fits on no place of `input`.
[[noreturn]] void reject_window(const Shape& input, Extent2D size);

// For predict(): throws Error{invalid_argument} unless `features` is [samples, input...] and the batch has a sample.
void check_prediction(const Shape& input, const Shape& features, std::int64_t batch_size);

}  // namespace holdfast
