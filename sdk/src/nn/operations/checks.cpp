// Constructors of layers name their class in an error. What build() finds begins with "it", because lowering puts the
// layer's name before it.

#include "nn/operations/checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "compute/window.h"
#include "holdfast/base/error.h"

namespace holdfast {

void check_extent(std::string_view kind, std::string_view option, std::int64_t value) {
  // With larger extents, products of two of them would not fit into 63 bits.
  if (value >= 1 && value <= Layer::kMaximumExtent) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("{} needs {} from 1 to {}, not {}", kind, option,
                                                       std::int64_t{Layer::kMaximumExtent}, value));
}

void check_extent(std::string_view kind, std::string_view option, Extent2D value) {
  check_extent(kind, option, value.height);
  check_extent(kind, option, value.width);
}

void check_extents(std::string_view kind, std::string_view option, std::span<const std::int64_t> values) {
  for (const std::int64_t value : values) check_extent(kind, option, value);
}

void check_spatial_axes(const Shape& input, std::size_t spatial_axes) {
  if (input.rank() == spatial_axes + 1) return;
  constexpr std::array kInputs = {"[steps, channels]", "[height, width, channels]", "[depth, height, width, channels]"};
  throw Error(ErrorCode::invalid_argument, fmt::format("it needs an input {}; a Reshape layer before it can make one",
                                                       kInputs.at(spatial_axes - 1)));
}

std::vector<std::int64_t> window_places(const Shape& input, const SlidingWindows& windows) {
  const std::size_t axes = windows.sizes.size();
  check_spatial_axes(input, axes);
  std::vector<std::int64_t> places, reaches;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    // A dilated window may reach much further than it has elements, so its reach is bounded too.
    reaches.push_back(compute::dilated_size(windows.sizes[axis], windows.dilation_rate[axis]));
    check_extent("it", "kernel extents that, multiplied by the dilation rate, are", reaches.back());
    places.push_back(compute::slide(input[axis], reaches[axis], windows.strides[axis], windows.padding).count);
  }
  // The window of padding valid must lie in the input. An output without elements would leave later layers nothing to
  // compute with.
  if (std::all_of(places.begin(), places.end(), [](std::int64_t count) { return count >= 1; })) return places;
  const std::vector<std::int64_t> extents(input.extents().begin(), input.extents().end() - 1);
  throw Error(ErrorCode::invalid_argument,
              fmt::format("it needs an input of at least {}, the size of its window, not {}; take a smaller window, or "
                          "Padding::same",
                          fmt::join(reaches, " x "), fmt::join(extents, " x ")));
}

const Value& only_input(std::span<const Value> inputs) {
  if (inputs.size() == 1) return inputs.front();
  throw Error(ErrorCode::invalid_argument,
              fmt::format("it takes one input, not {}; merge them before it, as by Concatenate", inputs.size()));
}

const Value& input_with_positions(std::span<const Value> inputs, std::size_t positions) {
  const Value& input = only_input(inputs);
  if (input.shape().rank() == positions + 1) return input;
  constexpr std::array<std::string_view, 4> kNeeded = {"[channels]", "[steps, channels]", "[height, width, channels]",
                                                       "[depth, height, width, channels]"};
  throw Error(ErrorCode::invalid_argument,
              fmt::format("it needs an input {}; reshape the input first", kNeeded.at(positions)));
}

void check_prediction(const Shape& input, const Shape& features, std::int64_t batch_size) {
  if (batch_size < 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("predict() needs a batch size of at least 1, not {}", batch_size));
  }
  // A single sample is easily passed instead of a batch, so the sentence speaks of it.
  if (features.rank() > 0 && features.without_batch() == input) return;
  std::string wanted;
  for (const std::int64_t extent : input.extents()) wanted += fmt::format(", {}", extent);
  const std::string remedy =
      features == input ? fmt::format("; that is one sample, so pass it as a batch of one: Shape{{1{}}}", wanted) : "";
  throw Error(ErrorCode::invalid_argument,
              fmt::format("predict() takes a batch of samples, [n{}], not {}{}", wanted, features.to_string(), remedy));
}

}  // namespace holdfast
