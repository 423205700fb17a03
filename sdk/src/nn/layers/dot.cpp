// A product of matrices has no kernel where both have samples, so it is written as all products of elements and their
// sums. Memory grows with the number of all products, so the layer is meant for vectors and small matrices.

#include "holdfast/nn/dot.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "holdfast/base/error.h"
#include "holdfast/nn/functions.h"
#include "nn/graph/config.h"
#include "nn/operations/elements.h"
#include "nn/operations/operations.h"
#include "nn/operations/strides.h"

namespace holdfast {

namespace {

// More axes than a value can have.
constexpr std::int64_t kMaximumDotAxis = 16;

// x / max(length of x along the axis, 1e-7). The bound is inside the root, so that a vector of zeros has a gradient.
Value normalized_along(const Value& x, std::int64_t axis) {
  const Value square_of_length = sum(square(x), {axis}, ReducedAxes::keep);
  return x * reciprocal_root(element_function(compute::ElementFunction::maximum, {square_of_length, 1e-14F}));
}

// The axis becomes the last one.
Value with_axis_last(const Value& x, std::size_t axis) {
  AxisList order;
  for (std::size_t other = 0; other < x.shape().rank(); ++other) {
    if (other != axis) order.push_back(static_cast<std::int64_t>(other));
  }
  order.push_back(static_cast<std::int64_t>(axis));
  return axis + 1 == x.shape().rank() ? x : permute(x, order);
}

}  // namespace

Dot::Dot(const DotAxes& axes, const DotOptions& options)
    : LayerOf(options.name), axes_(axes), normalizes_(options.normalize) {
  // The rank of the inputs is known when the layer is called. Until then the bound keeps out what no value can have.
  for (const std::int64_t axis : {axes.first, axes.second}) {
    if (axis >= -kMaximumDotAxis && axis < kMaximumDotAxis) continue;
    throw Error(ErrorCode::invalid_argument, fmt::format("Dot needs axes of its inputs, from {} to {}, not {}",
                                                         -kMaximumDotAxis, kMaximumDotAxis - 1, axis));
  }
}

std::vector<Value> Dot::build(LayerBuilder&, std::span<const Value> inputs) const {
  if (inputs.size() != 2) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("it takes two inputs, not {}; call it again for another product", inputs.size()));
  }
  const std::array<std::int64_t, 2> given = {axes_.first, axes_.second};
  std::vector<Value> factors;
  std::vector<std::int64_t> output;
  std::vector<std::int64_t> remaining;  // the product of the other extents of each input
  for (std::size_t i = 0; i < 2; ++i) {
    const std::size_t axis = checked_axis(given[i], inputs[i].shape(), "Dot");
    // The length is that of the vector along the axis, so it is computed before axes move.
    const Value factor = normalizes_ ? normalized_along(inputs[i], static_cast<std::int64_t>(axis)) : inputs[i];
    factors.push_back(with_axis_last(factor, axis));
    const Shape& shape = factors.back().shape();
    output.insert(output.end(), shape.extents().begin(), shape.extents().end() - 1);
    remaining.push_back(shape.element_count() / shape[shape.rank() - 1]);
  }
  const std::int64_t common = factors[0].shape()[factors[0].shape().rank() - 1];
  const std::int64_t other = factors[1].shape()[factors[1].shape().rank() - 1];
  if (common != other) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("its axes must have the same extent, but axis {} of the first input has {} and axis {} of "
                    "the second has {}; choose other axes, as Dot({{1, 0}}), or make the extents equal by a Dense "
                    "layer",
                    given[0], common, given[1], other));
  }
  // A product of two vectors has one element, for which Keras keeps an axis.
  if (output.empty()) output.push_back(1);
  // Each vector of the first input meets each vector of the second: [n, 1, k] and [1, m, k] are broadcast to [n, m, k].
  const Value products =
      reshape(factors[0], Shape{remaining[0], 1, common}) * reshape(factors[1], Shape{1, remaining[1], common});
  return {reshape(sum(products, {-1}), output)};
}

void Dot::write_config(ConfigWriter& config) const {
  config.integers("axes", {axes_.first, axes_.second});
  config.boolean("normalize", normalizes_);
}

std::shared_ptr<const Layer> Dot::from_config(const std::string& name, ConfigReader& config) {
  const std::vector<std::int64_t> axes = config.integers("axes");
  if (axes.size() != 2) {
    throw Error(ErrorCode::invalid_argument, fmt::format("\"axes\" needs two axes, not {}", axes.size()));
  }
  return std::make_shared<const Dot>(DotAxes{axes[0], axes[1]},
                                     DotOptions{.normalize = config.boolean("normalize"), .name = name});
}

}  // namespace holdfast
