// A reduction goes over neighbouring axes. Others are reduced group by group, so that no kernel walks through strides.
// docs/numerics.md says in which order elements are added.

#include <fmt/format.h>

#include <algorithm>

#include "holdfast/nn/functions.h"
#include "nn/graph/operation.h"
#include "nn/operations/elements.h"
#include "nn/operations/operation_registry.h"
#include "nn/operations/operations.h"
#include "nn/operations/strides.h"

namespace holdfast {

namespace {

using compute::ReductionKind;

// Over axes [begin, end) of a sample, which stay with extent 1; or over the samples.
struct ReducedRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool is_over_samples = false;
};

std::string_view name_of(ReductionKind kind) {
  return kind == ReductionKind::sum ? "sum" : kind == ReductionKind::mean ? "mean" : "largest";
}

class ReduceOperation final : public Operation {
 public:
  ReduceOperation(ReductionKind kind, const ReducedRange& range) : kind_(kind), range_(range) {}

  std::string name() const override { return std::string(name_of(kind_)); }
  bool is_sample_wise() const override { return !range_.is_over_samples; }
  std::optional<RowPart> row_part() const override {
    if (range_.is_over_samples) return RowPart{.kind = RowPart::Kind::sum_over_samples};
    return RowPart{.kind = RowPart::Kind::reduction, .reduction = kind_, .begin = range_.begin, .end = range_.end};
  }

  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    ValueSpec spec = *inputs[0];
    // Only gradients are added up over samples. A function that a model can name never reaches another sample.
    if (range_.is_over_samples) {
      spec.has_samples = false;
      return {spec};
    }
    if (range_.begin >= range_.end || range_.end > spec.shape.rank()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} cannot go over axes {} to {} of a value of shape {}", name(), range_.begin,
                              range_.end - 1, spec.shape.to_string()));
    }
    std::vector<std::int64_t> extents = spec.shape.extents();
    std::fill(extents.begin() + static_cast<std::ptrdiff_t>(range_.begin),
              extents.begin() + static_cast<std::ptrdiff_t>(range_.end), 1);
    spec.shape = Shape(std::move(extents));
    return {spec};
  }

  std::vector<MaybeValue> gradient(const GradientRequest& request) const override {
    const Value& g = *request.output_gradients[0];
    const Value& x = *request.inputs[0];
    // Each element has a share of 1 in a sum, and of 1 / n in a mean.
    if (kind_ == ReductionKind::sum) return {broadcast_to(g, x.spec())};
    if (kind_ == ReductionKind::mean) {
      return {broadcast_to(g / static_cast<float>(reduced(x.shape())), x.spec())};
    }
    // Equal largest elements share the gradient. So it does not matter which of them a kernel finds first.
    const Value is_largest = equal(x, request.outputs[0]);
    const Value count = apply_one(std::make_shared<const ReduceOperation>(ReductionKind::sum, range_), {is_largest});
    // g / count has extent 1 along the reduced axes, over which it is broadcast.
    return {is_largest * (g / count)};
  }

  void write_config(ConfigWriter& config) const override {
    // A file holds a range as its first axis and the one after its last.
    config.integers("axes", {static_cast<std::int64_t>(range_.begin), static_cast<std::int64_t>(range_.end)});
  }

  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    const ValueSpec& spec = *maker.inputs[0];
    compute::RowReduction reduction = {.kind = kind_};
    if (range_.is_over_samples) {
      reduction.reduced = maker.samples;
      reduction.inner = spec.shape.element_count();
    } else {
      // Axes before the range and the samples are one axis, and so are the axes after it.
      reduction.outer = spec.has_samples ? maker.samples : 1;
      for (std::size_t axis = 0; axis < range_.begin; ++axis) reduction.outer *= spec.shape[axis];
      reduction.reduced = reduced(spec.shape);
      for (std::size_t axis = range_.end; axis < spec.shape.rank(); ++axis) reduction.inner *= spec.shape[axis];
    }
    return make_function_kernel([&kernels = maker.backend.array_kernels(), reduction](const KernelArrays& arrays) {
      kernels.reduce(reduction, arrays.input(0), arrays.output(0));
    });
  }

 private:
  std::int64_t reduced(const Shape& shape) const {
    std::int64_t count = 1;
    for (std::size_t axis = range_.begin; axis < range_.end; ++axis) count *= shape[axis];
    return count;
  }

  const ReductionKind kind_;
  const ReducedRange range_;
};

Value reduce(const Value& x, ReductionKind kind, const AxisList& axes, ReducedAxes reduced) {
  const std::size_t rank = x.shape().rank();
  // An empty list stands for all axes, as in NumPy.
  std::vector<bool> is_reduced(rank, axes.empty());
  for (const std::int64_t axis : axes) {
    const std::size_t place = checked_axis(axis, x.shape(), name_of(kind));
    if (is_reduced[place]) {
      throw Error(ErrorCode::invalid_argument, fmt::format("{} was given axis {} twice", name_of(kind), axis));
    }
    is_reduced[place] = true;
  }
  Value result = x;
  for (std::size_t begin = 0; begin < rank; ++begin) {
    if (!is_reduced[begin]) continue;
    // Each group is a reduction of its own. A mean of means is the mean, because each of them is over equally many
    // elements.
    std::size_t end = begin;
    while (end < rank && is_reduced[end]) ++end;
    result =
        apply_one(std::make_shared<const ReduceOperation>(kind, ReducedRange{.begin = begin, .end = end}), {result});
    // Axis `end` is not reduced, so the loop may step over it.
    begin = end;
  }
  if (reduced == ReducedAxes::keep) return result;
  // Reduced axes have extent 1, so a view removes them.
  std::vector<std::int64_t> kept;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (!is_reduced[axis]) kept.push_back(x.shape()[axis]);
  }
  return reshape(result, Shape(std::move(kept)));
}

}  // namespace

std::shared_ptr<const Operation> read_reduction(ReductionKind kind, ConfigReader& config) {
  const std::vector<std::int64_t> axes = config.integers("axes");
  if (axes.size() != 2 || axes[0] < 0 || axes[1] < 0) {
    throw Error(ErrorCode::invalid_argument, "a reduction needs the first axis and the one after the last");
  }
  return std::make_shared<const ReduceOperation>(
      kind, ReducedRange{.begin = static_cast<std::size_t>(axes[0]), .end = static_cast<std::size_t>(axes[1])});
}

Value sum(const Value& x, const AxisList& axes, ReducedAxes reduced) {
  return reduce(x, ReductionKind::sum, axes, reduced);
}

Value mean(const Value& x, const AxisList& axes, ReducedAxes reduced) {
  return reduce(x, ReductionKind::mean, axes, reduced);
}

Value largest(const Value& x, const AxisList& axes, ReducedAxes reduced) {
  return reduce(x, ReductionKind::maximum, axes, reduced);
}

Value sum_over_samples(const Value& x) {
  return apply_one(std::make_shared<const ReduceOperation>(ReductionKind::sum, ReducedRange{.is_over_samples = true}),
                   {x});
}

}  // namespace holdfast
