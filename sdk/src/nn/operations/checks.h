#pragma once

// Checks of the arguments that several layers are constructed with.

#include <string_view>

#include "holdfast/compute/padding.h"
#include "holdfast/nn/layer.h"

namespace holdfast {

// Throw Error{invalid_argument} naming layer class and option unless the value is in [1, Layer::kMaximumExtent].
void check_extent(std::string_view kind, std::string_view option, std::int64_t value);
void check_extent(std::string_view kind, std::string_view option, Extent2D value);
void check_extents(std::string_view kind, std::string_view option, std::span<const std::int64_t> values);

// Throws Error{invalid_argument} unless the input has so many spatial axes, and after them the channels:
// [height, width, channels] for two.
void check_spatial_axes(const Shape& input, std::size_t spatial_axes);

// Windows that slide over the spatial axes of an input, with a number for each axis.
struct SlidingWindows {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> dilation_rate;
  Padding padding = Padding::valid;
};
// How many places the windows have along each axis. Throws Error{invalid_argument} unless the input has these axes and
// there is a place on each.
std::vector<std::int64_t> window_places(const Shape& input, const SlidingWindows& windows);

// The only input of a layer that takes one. Throws Error{invalid_argument} for another number of inputs.
const Value& only_input(std::span<const Value> inputs);

// The only input, if it has so many axes of positions and an axis of channels after them: [steps, channels], [height,
// width, channels] or [depth, height, width, channels]. Throws Error{invalid_argument} for another one.
const Value& input_with_positions(std::span<const Value> inputs, std::size_t positions);

// For predict(): throws Error{invalid_argument} unless `features` is [samples, input...] and the batch has a sample.
void check_prediction(const Shape& input, const Shape& features, std::int64_t batch_size);

}  // namespace holdfast
