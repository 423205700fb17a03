// Windows of one size are those of the usual pooling, which has kernels of its own. Others differ by one position. The
// mean of a box is the mean of the means along its axes, and so is the largest element, so one axis follows another.

#include "holdfast/nn/adaptive_pooling.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "holdfast/base/error.h"
#include "holdfast/nn/functions.h"
#include "nn/graph/config.h"
#include "nn/operations/checks.h"

namespace holdfast {
namespace {

using Sizes = std::vector<std::int64_t>;

// The kernels of pooling take up to three axes of positions.
void check_output_size(std::string_view kind, const Sizes& sizes) {
  if (sizes.empty() || sizes.size() > 3) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} needs 1 to 3 numbers of positions, not {}", kind, sizes.size()));
  }
  for (const std::int64_t size : sizes) check_extent(kind, "an output size", size);
}

const Value& checked_input(std::span<const Value> inputs, const Sizes& sizes) {
  const Value& input = only_input(inputs);
  if (input.shape().rank() == sizes.size() + 1) return input;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("its output size [{}] is for an input of {} axes, the last one of channels, and this one has "
                          "{}; give it a number for each axis of positions",
                          fmt::join(sizes, ", "), sizes.size() + 1, input.shape().rank()));
}

using ReduceWindow = Value (*)(const Value& x, const AxisList& axes, ReducedAxes reduced);

// Along one axis, with windows of different sizes.
Value pooled_along(const Value& x, std::int64_t axis, std::int64_t out, ReduceWindow reduce) {
  const std::int64_t in = x.shape()[static_cast<std::size_t>(axis)];
  // Each window has one element then, and is that element.
  if (in == out) return x;
  // Each window is an operation of its own, and the number may come from a file.
  if (out > kMostDifferentWindows) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("it makes {} positions of {}, in windows of different sizes, and such windows are at most {} "
                    "along an axis; take fewer, or numbers that divide their axes, all of them",
                    out, in, kMostDifferentWindows));
  }
  std::vector<Value> windows;
  for (std::int64_t i = 0; i < out; ++i) {
    // From floor(i in / out) to ceil((i + 1) in / out), in integers, which Keras divides likewise. The whole part of
    // in / out is multiplied apart, so that no product overflows.
    const std::int64_t begin = i * (in / out) + i * (in % out) / out;
    const std::int64_t end = (i + 1) * (in / out) + ((i + 1) * (in % out) + out - 1) / out;
    const Value window = slice(x, axis, begin, end);
    windows.push_back(reduce(window, {axis}, ReducedAxes::keep));
  }
  return windows.size() == 1 ? windows.front() : concatenate(windows, axis);
}

// All axes must divide, because a kernel pools along all of them at once.
bool are_all_equal(const Shape& shape, const Sizes& sizes) {
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    if (shape[axis] % sizes[axis] != 0) return false;
  }
  return true;
}

Value adaptively_pooled(const Value& input, const Sizes& sizes, ReduceWindow reduce,
                        Value (*pool)(const Value& x, const PoolingWindows& windows)) {
  // Windows of one size neither overlap nor leave a gap, so the kernels of pooling compute the same numbers.
  if (are_all_equal(input.shape(), sizes)) {
    PoolingWindows windows;
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) windows.size.push_back(input.shape()[axis] / sizes[axis]);
    return pool(input, windows);
  }
  Value result = input;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    result = pooled_along(result, static_cast<std::int64_t>(axis), sizes[axis], reduce);
  }
  return result;
}

}  // namespace

AdaptiveAveragePooling::AdaptiveAveragePooling(std::vector<std::int64_t> output_size,
                                               const AdaptivePoolingOptions& options)
    : LayerOf(options.name), output_size_(std::move(output_size)) {
  check_output_size("AdaptiveAveragePooling", output_size_);
}

std::vector<Value> AdaptiveAveragePooling::build(LayerBuilder&, std::span<const Value> inputs) const {
  return {adaptively_pooled(checked_input(inputs, output_size_), output_size_, mean, average_pooling)};
}

void AdaptiveAveragePooling::write_config(ConfigWriter& config) const {
  config.integers("output_size", output_size_);
}

std::shared_ptr<const Layer> AdaptiveAveragePooling::from_config(const std::string& name, ConfigReader& config) {
  return std::make_shared<const AdaptiveAveragePooling>(config.integers("output_size"),
                                                        AdaptivePoolingOptions{.name = name});
}

AdaptiveMaxPooling::AdaptiveMaxPooling(std::vector<std::int64_t> output_size, const AdaptivePoolingOptions& options)
    : LayerOf(options.name), output_size_(std::move(output_size)) {
  check_output_size("AdaptiveMaxPooling", output_size_);
}

std::vector<Value> AdaptiveMaxPooling::build(LayerBuilder&, std::span<const Value> inputs) const {
  return {adaptively_pooled(checked_input(inputs, output_size_), output_size_, largest, max_pooling)};
}

void AdaptiveMaxPooling::write_config(ConfigWriter& config) const {
  config.integers("output_size", output_size_);
}

std::shared_ptr<const Layer> AdaptiveMaxPooling::from_config(const std::string& name, ConfigReader& config) {
  return std::make_shared<const AdaptiveMaxPooling>(config.integers("output_size"),
                                                    AdaptivePoolingOptions{.name = name});
}

}  // namespace holdfast
