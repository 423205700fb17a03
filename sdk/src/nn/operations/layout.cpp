// Slices, padding, concatenation, permutation, reversal and repetition: copies between two arrays along strides. The
// gradient of each function is another one of them: a slice leads to padding, and a permutation to its inverse. So no
// function needs a backward kernel, and one kernel of each back end serves all. docs/decisions/models.md

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "holdfast/nn/functions.h"
#include "nn/graph/operation.h"
#include "nn/operations/operation_registry.h"
#include "nn/operations/operations.h"
#include "nn/operations/strides.h"

namespace holdfast {

namespace {

// Along one axis an array is [outer, extent, inner].
struct AxisView {
  // Samples are an axis before all others, and so a part of `outer`.
  AxisView(const ValueSpec& spec, std::size_t axis, std::int64_t samples) : extent(spec.shape[axis]) {
    if (spec.has_samples) outer = samples;
    for (std::size_t i = 0; i < axis; ++i) outer *= spec.shape[i];
    for (std::size_t i = axis + 1; i < spec.shape.rank(); ++i) inner *= spec.shape[i];
  }

  std::int64_t outer = 1;
  std::int64_t extent;
  std::int64_t inner = 1;
};

// `count` places along the axis, from one place to another.
compute::StridedCopy copy_along(const AxisView& from, std::int64_t from_place, const AxisView& to,
                                std::int64_t to_place, std::int64_t count) {
  // The places along the axis and all axes after it lie one after another. So two axes describe the copy, and its rows
  // are long.
  return {.axes = 2,
          .extents = {from.outer, count * from.inner},
          .from_strides = {from.extent * from.inner, 1},
          .to_strides = {to.extent * to.inner, 1},
          .from_offset = from_place * from.inner,
          .to_offset = to_place * to.inner};
}

ValueSpec with_extent(ValueSpec spec, std::size_t axis, std::int64_t extent) {
  std::vector<std::int64_t> extents = spec.shape.extents();
  extents[axis] = extent;
  spec.shape = Shape(std::move(extents));
  return spec;
}

class SliceOperation final : public Operation {
 public:
  SliceOperation(std::size_t axis, std::int64_t begin, std::int64_t end) : axis_(axis), begin_(begin), end_(end) {}

  std::string name() const override { return "slice"; }
  bool is_sample_wise() const override { return true; }
  bool takes_integers() const override { return true; }
  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    const Shape& shape = inputs[0]->shape;
    if (axis_ >= shape.rank() || begin_ < 0 || begin_ >= end_ || end_ > shape[axis_]) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("elements {} to {} of axis {} of a value of shape {} are not a part of it; begin at 0 or "
                              "later, and end after the beginning and not after the axis",
                              begin_, end_, axis_, shape.to_string()));
    }
    return {with_extent(*inputs[0], axis_, end_ - begin_)};
  }
  std::vector<MaybeValue> gradient(const GradientRequest& request) const override {
    const std::int64_t extent = request.inputs[0]->shape()[axis_];
    // Elements outside of the slice have the gradient 0.
    return {pad(*request.output_gradients[0], static_cast<std::int64_t>(axis_), begin_, extent - end_)};
  }
  void write_config(ConfigWriter& config) const override {
    config.integer("axis", static_cast<std::int64_t>(axis_));
    config.integer("begin", begin_);
    config.integer("end", end_);
  }
  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    const compute::StridedCopy copy = copy_along(AxisView(*maker.inputs[0], axis_, maker.samples), begin_,
                                                 AxisView(*maker.outputs[0], axis_, maker.samples), 0, end_ - begin_);
    return make_function_kernel([&kernels = maker.backend.array_kernels(), copy](const KernelArrays& arrays) {
      kernels.copy(copy, arrays.input(0), arrays.output(0));
    });
  }

 private:
  const std::size_t axis_;
  const std::int64_t begin_;
  const std::int64_t end_;
};

class PadOperation final : public Operation {
 public:
  PadOperation(std::size_t axis, std::int64_t before, std::int64_t after)
      : axis_(axis), before_(before), after_(after) {}

  std::string name() const override { return "pad"; }
  bool is_sample_wise() const override { return true; }
  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    const Shape& shape = inputs[0]->shape;
    // With larger margins, extents would not fit into 63 bits when they are multiplied.
    if (axis_ >= shape.rank() || before_ < 0 || after_ < 0 || before_ > Layer::kMaximumExtent ||
        after_ > Layer::kMaximumExtent) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("axis {} of a value of shape {} cannot be padded with {} and {} zeros", axis_,
                              shape.to_string(), before_, after_));
    }
    return {with_extent(*inputs[0], axis_, before_ + shape[axis_] + after_)};
  }
  std::vector<MaybeValue> gradient(const GradientRequest& request) const override {
    const Value& g = *request.output_gradients[0];
    return {slice(g, static_cast<std::int64_t>(axis_), before_, g.shape()[axis_] - after_)};
  }
  void write_config(ConfigWriter& config) const override {
    config.integer("axis", static_cast<std::int64_t>(axis_));
    config.integer("before", before_);
    config.integer("after", after_);
  }
  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    const AxisView from(*maker.inputs[0], axis_, maker.samples);
    const AxisView to(*maker.outputs[0], axis_, maker.samples);
    const compute::StridedCopy copy = copy_along(from, 0, to, before_, from.extent);
    const auto floats = static_cast<std::size_t>(to.outer * to.extent * to.inner);
    return make_function_kernel([&backend = maker.backend, copy, floats](const KernelArrays& arrays) {
      // All elements are cleared, those of the middle too. This takes one call, whatever the margins are.
      backend.memory().fill_zero({arrays.output(0), floats});
      backend.array_kernels().copy(copy, arrays.input(0), arrays.output(0));
    });
  }

 private:
  const std::size_t axis_;
  const std::int64_t before_;
  const std::int64_t after_;
};

class ConcatenateOperation final : public Operation {
 public:
  explicit ConcatenateOperation(std::size_t axis) : axis_(axis) {}

  std::string name() const override { return "concatenate"; }
  bool is_sample_wise() const override { return true; }
  bool takes_integers() const override { return true; }
  // A list of one is joined as well, so that callers need not look at its length.
  bool takes_inputs(std::size_t count) const override { return count >= 1; }
  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override;
  std::vector<MaybeValue> gradient(const GradientRequest& request) const override {
    std::vector<MaybeValue> gradients;
    std::int64_t begin = 0;
    for (std::size_t input = 0; input < request.inputs.size(); ++input) {
      // Inputs follow one another along the axis, so each gradient is a slice.
      const std::int64_t end = begin + request.inputs[input]->shape()[axis_];
      gradients.push_back(request.needed[input] ? MaybeValue(slice(*request.output_gradients[0],
                                                                   static_cast<std::int64_t>(axis_), begin, end))
                                                : std::nullopt);
      begin = end;
    }
    return gradients;
  }
  void write_config(ConfigWriter& config) const override { config.integer("axis", static_cast<std::int64_t>(axis_)); }
  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    const AxisView to(*maker.outputs[0], axis_, maker.samples);
    std::vector<compute::StridedCopy> copies;
    // One copy for each input needs no list of pointers on a device.
    std::int64_t place = 0;
    for (const auto& input : maker.inputs) {
      const AxisView from(*input, axis_, maker.samples);
      // Inputs may have samples or not alike: outputs() has compared that, too.
      copies.push_back(copy_along(from, 0, to, place, from.extent));
      place += from.extent;
    }
    return make_function_kernel([&kernels = maker.backend.array_kernels(), copies](const KernelArrays& arrays) {
      for (std::size_t i = 0; i < copies.size(); ++i) kernels.copy(copies[i], arrays.input(i), arrays.output(0));
    });
  }

 private:
  const std::size_t axis_;
};

std::vector<ValueSpec> ConcatenateOperation::outputs(std::span<const std::optional<ValueSpec>> inputs) const {
  std::int64_t extent = 0;
  if (inputs.empty() || axis_ >= inputs[0]->shape.rank()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("there is nothing to concatenate along axis {}", axis_));
  }
  for (const auto& input : inputs) {
    // With extent 1 along the axis, the specs must be equal in all else. The ranks come first: with_extent() needs the
    // axis.
    const bool fits = input->shape.rank() == inputs[0]->shape.rank() && input->dtype == inputs[0]->dtype &&
                      with_extent(*input, axis_, 1) == with_extent(*inputs[0], axis_, 1);
    if (!fits) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("values of shapes {} of {} and {} of {} cannot be concatenated along axis {}: all other "
                              "extents must be equal, and the types; choose another axis, or reshape() or cast() one "
                              "of them",
                              inputs[0]->shape.to_string(), holdfast::name(inputs[0]->dtype), input->shape.to_string(),
                              holdfast::name(input->dtype), axis_));
    }
    extent += input->shape[axis_];
  }
  return {with_extent(*inputs[0], axis_, extent)};
}

class PermuteOperation final : public Operation {
 public:
  explicit PermuteOperation(std::vector<std::size_t> order) : order_(std::move(order)) {}

  std::string name() const override { return "permute"; }
  bool is_sample_wise() const override { return true; }
  bool takes_integers() const override { return true; }
  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    ValueSpec spec = *inputs[0];
    // Axes are not joined in a permutation. Each takes one of the kernel's axes, and the samples take one more.
    std::vector<std::size_t> sorted = order_;
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::size_t> all(spec.shape.rank());
    std::iota(all.begin(), all.end(), std::size_t{0});
    if (sorted != all || all.size() + 1 > compute::kMaximumAxes) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("permute() needs each axis of a value of shape {} once, and {} axes at most, not [{}]",
                              spec.shape.to_string(), compute::kMaximumAxes - 1, fmt::join(order_, ", ")));
    }
    std::vector<std::int64_t> extents;
    for (const std::size_t axis : order_) extents.push_back(spec.shape[axis]);
    spec.shape = Shape(std::move(extents));
    return {spec};
  }
  std::vector<MaybeValue> gradient(const GradientRequest& request) const override {
    // The axis that went to place i comes back from it.
    AxisList inverse(order_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) inverse[order_[i]] = static_cast<std::int64_t>(i);
    return {permute(*request.output_gradients[0], inverse)};
  }
  void write_config(ConfigWriter& config) const override { config.integers("order", {order_.begin(), order_.end()}); }
  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    const ValueSpec& spec = *maker.inputs[0];
    const Shape& to = maker.outputs[0]->shape;
    const std::vector<std::int64_t> from_strides = row_major_strides(spec.shape);
    const std::vector<std::int64_t> to_strides = row_major_strides(to);
    compute::StridedCopy copy = {.axes = 1 + order_.size()};
    copy.extents[0] = spec.has_samples ? maker.samples : 1;
    copy.from_strides[0] = copy.to_strides[0] = spec.shape.element_count();
    for (std::size_t axis = 0; axis < order_.size(); ++axis) {
      // The copy walks through the output in order. Axis i of it is axis order[i] of the input, so only the strides
      // differ.
      copy.extents[1 + axis] = to[axis];
      copy.from_strides[1 + axis] = from_strides[order_[axis]];
      copy.to_strides[1 + axis] = to_strides[axis];
    }
    return make_function_kernel([&kernels = maker.backend.array_kernels(), copy](const KernelArrays& arrays) {
      kernels.copy(copy, arrays.input(0), arrays.output(0));
    });
  }

 private:
  // Axis i of the output is axis order_[i] of the input.
  const std::vector<std::size_t> order_;
};

class FlipOperation final : public Operation {
 public:
  explicit FlipOperation(std::size_t axis) : axis_(axis) {}

  std::string name() const override { return "flip"; }
  bool is_sample_wise() const override { return true; }
  bool takes_integers() const override { return true; }
  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    if (axis_ < inputs[0]->shape.rank()) return {*inputs[0]};
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a value of shape {} has no axis {} to flip", inputs[0]->shape.to_string(), axis_));
  }
  std::vector<MaybeValue> gradient(const GradientRequest& request) const override {
    // A flip is its own inverse.
    return {flip(*request.output_gradients[0], static_cast<std::int64_t>(axis_))};
  }
  void write_config(ConfigWriter& config) const override { config.integer("axis", static_cast<std::int64_t>(axis_)); }
  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    const AxisView view(*maker.inputs[0], axis_, maker.samples);
    // A negative stride walks back from the last place along the axis.
    const std::int64_t whole = view.extent * view.inner;
    // From the last element to the first.
    const compute::StridedCopy copy = {.axes = 3,
                                       .extents = {view.outer, view.extent, view.inner},
                                       .from_strides = {whole, -view.inner, 1},
                                       .to_strides = {whole, view.inner, 1},
                                       .from_offset = whole - view.inner};
    return make_function_kernel([&kernels = maker.backend.array_kernels(), copy](const KernelArrays& arrays) {
      kernels.copy(copy, arrays.input(0), arrays.output(0));
    });
  }

 private:
  const std::size_t axis_;
};

// The value may lack the axis: outputs() refuses one that is too large.
std::size_t axis_from(std::int64_t axis) {
  if (axis >= 0) return static_cast<std::size_t>(axis);
  throw Error(ErrorCode::invalid_argument, fmt::format("axis {} is negative", axis));
}

}  // namespace

// Readers check no numbers of a file: outputs() compares them with the input that they are for.
std::shared_ptr<const Operation> read_slice(ConfigReader& config) {
  const std::int64_t begin = config.integer("begin");
  const std::int64_t end = config.integer("end");
  return std::make_shared<const SliceOperation>(axis_from(config.integer("axis")), begin, end);
}

std::shared_ptr<const Operation> read_pad(ConfigReader& config) {
  const std::int64_t before = config.integer("before");
  const std::int64_t after = config.integer("after");
  return std::make_shared<const PadOperation>(axis_from(config.integer("axis")), before, after);
}

std::shared_ptr<const Operation> read_concatenate(ConfigReader& config) {
  return std::make_shared<const ConcatenateOperation>(axis_from(config.integer("axis")));
}

std::shared_ptr<const Operation> read_permute(ConfigReader& config) {
  std::vector<std::size_t> order;
  for (const std::int64_t axis : config.integers("order")) order.push_back(axis_from(axis));
  return std::make_shared<const PermuteOperation>(std::move(order));
}

std::shared_ptr<const Operation> read_flip(ConfigReader& config) {
  return std::make_shared<const FlipOperation>(axis_from(config.integer("axis")));
}

Value flip(const Value& x, std::int64_t axis) {
  return apply_one(std::make_shared<const FlipOperation>(checked_axis(axis, x.shape(), "flip")), {x});
}

Value slice(const Value& x, std::int64_t axis, std::int64_t begin, std::int64_t end) {
  const std::size_t place = checked_axis(axis, x.shape(), "slice");
  return apply_one(std::make_shared<const SliceOperation>(place, begin, end), {x});
}

std::vector<Value> split(const Value& x, const std::vector<std::int64_t>& extents, std::int64_t axis) {
  const std::size_t place = checked_axis(axis, x.shape(), "split");
  const std::int64_t extent = x.shape()[place];
  std::int64_t sum = 0;
  bool are_valid = !extents.empty();
  for (const std::int64_t part : extents) {
    // Written so that no sum can overflow.
    are_valid = are_valid && part >= 1 && part <= extent - sum;
    if (are_valid) sum += part;
  }
  if (!are_valid || sum != extent) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("split() got parts of [{}] along axis {} of {}; give parts of at least 1 that add up to {}",
                            fmt::join(extents, ", "), place, x.shape().to_string(), extent));
  }
  std::vector<Value> values;
  std::int64_t begin = 0;
  for (const std::int64_t part : extents) {
    // A slice for each part. Where gradients are asked for, those of all parts are padded and added.
    values.push_back(slice(x, static_cast<std::int64_t>(place), begin, begin + part));
    begin += part;
  }
  return values;
}

std::vector<Value> split(const Value& x, std::int64_t parts, std::int64_t axis) {
  const std::size_t place = checked_axis(axis, x.shape(), "split");
  const std::int64_t extent = x.shape()[place];
  if (parts < 1 || extent % parts != 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("split() got {} parts along axis {} of {}; {} is not a multiple of it. Give the extent of "
                            "each part instead",
                            parts, place, x.shape().to_string(), extent));
  }
  return split(x, std::vector<std::int64_t>(static_cast<std::size_t>(parts), extent / parts), axis);
}

Value pad(const Value& x, std::int64_t axis, std::int64_t before, std::int64_t after) {
  const std::size_t place = checked_axis(axis, x.shape(), "pad");
  // A padding of nothing would be a copy that costs memory.
  if (before == 0 && after == 0) return x;
  return apply_one(std::make_shared<const PadOperation>(place, before, after), {x});
}

Value concatenate(const std::vector<Value>& values, std::int64_t axis) {
  if (values.empty()) throw Error(ErrorCode::invalid_argument, "concatenate() needs at least one value");
  // The axis is that of the first value. outputs() compares all others with it.
  const std::size_t place = checked_axis(axis, values[0].shape(), "concatenate");
  return apply_one(std::make_shared<const ConcatenateOperation>(place), {values.begin(), values.end()});
}

Value permute(const Value& x, const AxisList& order) {
  std::vector<std::size_t> places;
  for (const std::int64_t axis : order) places.push_back(checked_axis(axis, x.shape(), "permute"));
  return apply_one(std::make_shared<const PermuteOperation>(std::move(places)), {x});
}

// An axis of extent 1 after it is broadcast, and both are joined. The gradient follows from that of its parts.
Value repeat(const Value& x, std::int64_t axis, std::int64_t count) {
  // Each element is repeated where it stands, as in NumPy's repeat(): [a, b] becomes [a, a, b, b].
  const std::size_t place = checked_axis(axis, x.shape(), "repeat");
  if (count < 1) {
    throw Error(ErrorCode::invalid_argument, fmt::format("repeat() needs a count of at least 1, not {}", count));
  }
  std::vector<std::int64_t> extents = x.shape().extents();
  const auto after = extents.begin() + static_cast<std::ptrdiff_t>(place) + 1;
  const auto one = extents.insert(after, 1);
  // Both reshapes are views; only the broadcast copies.
  const Value apart = reshape(x, Shape(extents));
  *one = count;
  const Value repeated = broadcast(apart, Shape(extents));
  return reshape(repeated, with_extent(x.spec(), place, x.shape()[place] * count).shape);
}

}  // namespace holdfast
