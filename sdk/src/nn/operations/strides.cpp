// Kernels walk along few axes, and long rows are fast. So axes of extent 1 are left out, and neighbours are joined
// where all arrays allow. The samples are the first axis; an array without samples is repeated along it.
// docs/decisions/models.md

#include "nn/operations/strides.h"

#include <fmt/format.h>

#include "holdfast/base/error.h"

namespace holdfast {

using compute::kMaximumAxes;

std::vector<std::int64_t> row_major_strides(const Shape& shape) {
  std::vector<std::int64_t> strides(shape.rank());
  std::int64_t stride = 1;
  // The last axis is the one whose elements are neighbours.
  for (std::size_t axis = shape.rank(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

std::size_t checked_axis(std::int64_t axis, const Shape& shape, std::string_view function) {
  const auto rank = static_cast<std::int64_t>(shape.rank());
  // A negative axis counts from the end, as in NumPy.
  if (axis >= -rank && axis < rank) return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format(
          "{} was given axis {} of a value of shape {}, which has {} axes; count from 0, or from -1 for the last one",
          function, axis, shape.to_string(), rank));
}

namespace {

// Strides of an input by axis of the output; 0 where it is repeated. Axis 0 is the sample axis.
std::vector<std::int64_t> broadcast_strides(const ValueSpec& input, const ValueSpec& output) {
  const std::vector<std::int64_t> own = row_major_strides(input.shape);
  const std::size_t missing = output.shape.rank() - input.shape.rank();
  std::vector<std::int64_t> strides(1 + output.shape.rank(), 0);
  // A stride of 0 repeats what is there once: a value without samples for each of them, and an axis of extent 1.
  strides[0] = input.has_samples ? input.shape.element_count() : 0;
  for (std::size_t axis = 0; axis < input.shape.rank(); ++axis) {
    strides[1 + missing + axis] = input.shape[axis] == 1 ? 0 : own[axis];
  }
  return strides;
}

// Axes from the last to the first; one is joined with the axis after it where all arrays allow.
class JoinedAxes {
 public:
  explicit JoinedAxes(std::size_t arrays) : strides_(arrays) {}

  void add(std::int64_t extent, const std::vector<std::int64_t>& strides) {
    // An axis of one element changes no place.
    if (extent == 1) return;
    bool joins = !extents_.empty();
    for (std::size_t i = 0; joins && i < strides.size(); ++i) {
      // One step along this axis must be as long as the joined axes together. Where an array is repeated along both,
      // all strides are 0 and join too.
      joins = strides[i] == strides_[i].back() * extents_.back();
    }
    if (joins) {
      extents_.back() *= extent;
      return;
    }
    extents_.push_back(extent);
    for (std::size_t i = 0; i < strides.size(); ++i) strides_[i].push_back(strides[i]);
  }

  std::size_t write(compute::Axes& extents) {
    // A single number needs an axis too, since kernels have at least one.
    if (extents_.empty()) add_single();
    if (extents_.size() > kMaximumAxes) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("a value takes {} axes with samples, and at most {} are possible; join axes by reshape() first",
                      extents_.size(), kMaximumAxes));
    }
    // Axes were added from the last one, and kernels take them from the first one.
    std::copy(extents_.rbegin(), extents_.rend(), extents.of_axis);
    return extents_.size();
  }
  void write_strides(std::size_t array, compute::Axes& strides) const {
    std::copy(strides_[array].rbegin(), strides_[array].rend(), strides.of_axis);
  }

 private:
  void add_single() {
    extents_.push_back(1);
    for (auto& strides : strides_) strides.push_back(0);
  }

  std::vector<std::int64_t> extents_;
  std::vector<std::vector<std::int64_t>> strides_;
};

}  // namespace

compute::ElementShape element_shape(std::span<const std::optional<ValueSpec>> inputs, const ValueSpec& output,
                                    std::int64_t samples) {
  std::vector<std::vector<std::int64_t>> by_input;
  for (const auto& input : inputs) by_input.push_back(broadcast_strides(*input, output));
  // The output is row-major and walked in order, so it needs no strides and every join fits it.
  JoinedAxes joined(inputs.size());
  for (std::size_t axis = output.shape.rank() + 1; axis-- > 0;) {
    std::vector<std::int64_t> strides;
    for (const auto& of_input : by_input) strides.push_back(of_input[axis]);
    const std::int64_t first_extent = output.has_samples ? samples : 1;
    joined.add(axis == 0 ? first_extent : output.shape[axis - 1], strides);
  }
  compute::ElementShape shape;
  shape.axes = joined.write(shape.extents);
  for (std::size_t input = 0; input < inputs.size(); ++input) joined.write_strides(input, shape.strides[input]);
  return shape;
}

compute::StridedCopy broadcasting_copy(const ValueSpec& input, const ValueSpec& output, std::int64_t samples) {
  const std::optional<ValueSpec> from = input;
  const std::vector<std::int64_t> strides = broadcast_strides(input, output);
  // A copy has strides on both sides, so the output is one of two arrays here.
  const std::vector<std::int64_t> own = row_major_strides(output.shape);
  JoinedAxes joined(2);
  for (std::size_t axis = output.shape.rank() + 1; axis-- > 0;) {
    if (axis == 0) {
      joined.add(output.has_samples ? samples : 1, {strides[0], output.shape.element_count()});
    } else {
      joined.add(output.shape[axis - 1], {strides[axis], own[axis - 1]});
    }
  }
  compute::StridedCopy copy;
  copy.axes = joined.write(copy.extents);
  joined.write_strides(0, copy.from_strides);
  joined.write_strides(1, copy.to_strides);
  return copy;
}

}  // namespace holdfast
