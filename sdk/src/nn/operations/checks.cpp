#include "nn/operations/checks.h"

#include <fmt/format.h>

#include <array>

#include "compute/window.h"
#include "holdfast/base/error.h"

namespace holdfast {

void check_extent(std::string_view kind, std::string_view option, std::int64_t value) {
  if (value >= 1 && value <= Layer::kMaximumExtent) return;
  throw Error(ErrorCode::invalid_argument, std::string(kind) + " needs " + std::string(option) + " from 1 to " +
                                               std::to_string(Layer::kMaximumExtent) + ", not " +
                                               std::to_string(value));
}

void check_extent(std::string_view kind, std::string_view option, Extent2D value) {
  check_extent(kind, option, value.height);
  check_extent(kind, option, value.width);
}

static void check_image(const Shape& input) {
  if (input.rank() == 3) return;
  throw Error(ErrorCode::invalid_argument, "it needs an input [height, width, channels]");
}

Extent2D window_places(const Shape& image, Extent2D size, Extent2D strides, Padding padding) {
  check_image(image);
  const auto rows = compute::slide(image[0], size.height, strides.height, padding);
  const auto columns = compute::slide(image[1], size.width, strides.width, padding);
  if (rows.count >= 1 && columns.count >= 1) return {rows.count, columns.count};
  throw Error(ErrorCode::invalid_argument,
              fmt::format("it needs an input of at least {} x {}, the size of its window, not {} x {}", size.height,
                          size.width, image[0], image[1]));
}

const Value& only_input(std::span<const Value> inputs) {
  if (inputs.size() == 1) return inputs.front();
  throw Error(ErrorCode::invalid_argument, fmt::format("it takes one input, not {}", inputs.size()));
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
                "predict() needs a batch size of at least 1, not " + std::to_string(batch_size));
  }
  if (features.rank() > 0 && features.without_batch() == input) return;
  std::string wanted;
  for (const std::int64_t extent : input.extents()) wanted += ", " + std::to_string(extent);
  throw Error(
      ErrorCode::invalid_argument,
      "predict() takes a batch of samples, [n" + wanted + "], not " + features.to_string() +
          (features == input ? "; that is one sample, so pass it as a batch of one: Shape{1" + wanted + "}" : ""));
}

}  // namespace holdfast
