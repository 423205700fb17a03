// The sum over the samples is a part of the graph, so its gradient is a single number, the scale. The outputs of the
// model take the place of a parameter, because differentiate() makes gradients of parameters. Weights multiply within
// the graph. What has weight 0 is replaced by zero before it is computed with, and its value and gradient afterwards:
// a product with 0 would keep a NaN. docs/decisions/losses.md

#include "nn/program/value_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "holdfast/base/error.h"
#include "holdfast/nn/functions.h"
#include "holdfast/nn/layer.h"
#include "nn/graph/graph_builder.h"
#include "nn/model/differentiate.h"
#include "nn/operations/elements.h"

namespace holdfast {
namespace {

constexpr std::size_t kTargets = 0, kWeights = 1;  // inputs of the graph

bool begins_with(const Shape& shape, const Shape& first) {
  return first.rank() <= shape.rank() &&
         std::ranges::equal(first.extents(), std::span(shape.extents()).first(first.rank()));
}

class SumsBuilder {
 public:
  // `source` is that of the outputs.
  SumsBuilder(const std::string& what, const EvaluatedShapes& shapes, GraphArray::Source source)
      : what_(what),
        shapes_(shapes),
        outputs_(builder_.bind(builder_.add_array(source, source == GraphArray::Source::input ? kOutputsAsInput : 0,
                                                  {.shape = shapes.outputs}))),
        targets_(builder_.bind(builder_.add_array(GraphArray::Source::input, kTargets, {.shape = shapes.targets}))) {
    if (!shapes.weights) return;
    weights_ = builder_.bind(builder_.add_array(GraphArray::Source::input, kWeights, {.shape = *shapes.weights}));
    // What is masked is not seen at all: it may be NaN, and 0 times NaN is a NaN.
    seen_outputs_ = where(along(*weights_, shapes.outputs), outputs_, 0.0F);
  }

  // The third input of a graph without a backward pass.
  static constexpr std::size_t kOutputsAsInput = 2;

  const Value& outputs() const { return seen_outputs_ ? *seen_outputs_ : outputs_; }
  const Value& targets() const { return targets_; }

  // Appends the sum over all samples of a value that the application has described. Returns how many elements it has.
  std::size_t add(const Value& value, ElementsOfSum elements = ElementsOfSum::mean, std::size_t kept_axes = 0) {
    check(value, kept_axes);
    Value each = reduced_beyond_weights(value, elements, kept_axes);
    // The condition comes first, so that what is masked adds neither a value nor a gradient.
    if (weights_) {
      const Value weights = along(*weights_, each.shape());
      each = where(weights, weights * each, 0.0F);
    }
    const AxisList axes = axes_from(0, each.shape().rank() - kept_axes);
    if (!axes.empty()) each = sum(each, axes);
    builder_.graph().outputs.push_back(builder_.append(sum_over_samples(each)));
    return static_cast<std::size_t>(each.shape().element_count());
  }

  GraphBuilder& builder() { return builder_; }

 private:
  // The weights with axes of extent 1 after them, so that they are broadcast to a shape that begins with theirs.
  static Value along(const Value& weights, const Shape& shape) {
    std::vector<std::int64_t> extents = weights.shape().extents();
    extents.resize(shape.rank(), 1);
    return weights.shape().rank() == shape.rank() ? weights : reshape(weights, extents);
  }

  static AxisList axes_from(std::size_t begin, std::size_t end) {
    AxisList axes;
    for (std::size_t axis = begin; axis < end; ++axis) axes.push_back(static_cast<std::int64_t>(axis));
    return axes;
  }

  std::size_t weight_axes() const { return weights_ ? shapes_.weights->rank() : 0; }

  Value reduced_beyond_weights(const Value& value, ElementsOfSum elements, std::size_t kept_axes) const {
    const AxisList axes = axes_from(weight_axes(), value.shape().rank() - kept_axes);
    if (axes.empty()) return value;
    return elements == ElementsOfSum::all ? sum(value, axes) : mean(value, axes);
  }

  [[noreturn]] void refuse(const std::string& problem) const {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} {}", what_, problem));
  }

  void check(const Value& value, std::size_t kept_axes) const {
    // Bound values of another description would be taken for arrays of this one: they have numbers of another graph.
    const auto is_own = [&](const std::shared_ptr<const ValueNode>& node) {
      return node == outputs_.node() || node == targets_.node() || (weights_ && node == weights_->node());
    };
    for (const auto& node : nodes_in_order({value}, is_own)) {
      if (node->kind == ValueNode::Kind::operation) continue;
      refuse(node->kind == ValueNode::Kind::layer
                 ? fmt::format("uses a layer ({}); it may use functions of values alone (functions.h)",
                               node->layer->kind())
                 : "uses a value that is neither its outputs nor its targets; describe it from these two each time");
    }
    if (value.dtype() != DType::f32) refuse(fmt::format("is of {}; make it f32, with cast()", name(value.dtype())));
    if (!value.has_samples()) refuse("does not depend on the samples; compute it from the outputs and the targets");
    if (value.shape().rank() < kept_axes) {
      refuse(fmt::format("has a sum of the shape {}, and kept_axes() is {}; give each sum so many last axes",
                         value.shape().to_string(), kept_axes));
    }
    if (value.shape().rank() >= weight_axes() + kept_axes &&
        (!weights_ || begins_with(value.shape(), *shapes_.weights))) {
      return;
    }
    refuse(
        fmt::format("has the shape {} for one sample, and the weights of a sample have the shape {}; the first axes "
                    "of the loss or metric must be those of the weights",
                    value.shape().to_string(), shapes_.weights->to_string()));
  }

  const std::string& what_;
  const EvaluatedShapes& shapes_;
  GraphBuilder builder_;
  Value outputs_;
  Value targets_;
  std::optional<Value> weights_;
  std::optional<Value> seen_outputs_;  // zero where they are masked
};

}  // namespace

std::size_t SumsGraph::element_count() const {
  return std::accumulate(elements.begin(), elements.end(), std::size_t{0});
}

// What `describe` gives. `what` is named in errors of the functions of values that it calls: they know only shapes.
template <class Describe>
static auto described(const std::string& what, const Describe& describe, const SumsBuilder& sums) {
  try {
    return describe(sums.outputs(), sums.targets());
  } catch (const Error& error) {
    // Checks of a loss or metric of ours begin with its name.
    const std::string name = what.substr(what.find('"') + 1, what.rfind('"') - what.find('"') - 1);
    const std::string_view sentence = error.what();
    if (sentence.starts_with(what) || (!name.empty() && sentence.starts_with(name))) throw;
    throw Error(error.code(), fmt::format("{} cannot be computed: {}", what, error.what()));
  }
}

SumsGraph graph_of_loss(const std::string& what, const DescribeLoss& describe, const EvaluatedShapes& shapes) {
  SumsBuilder sums(what, shapes, GraphArray::Source::parameter);
  const std::size_t elements = sums.add(described(what, describe, sums));
  SumsGraph result = {
      .graph = {}, .elements = {elements}, .differentiated = {}, .has_weights = shapes.weights.has_value()};
  result.differentiated.add("outputs", shapes.outputs);
  differentiate(sums.builder(), 1, {});
  result.graph = std::move(sums.builder().graph());
  if (result.graph.parameter_gradients.front() != kNoArray) return result;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} has no gradient for the outputs of the model, so nothing could be trained; comparisons "
                          "and stop_gradient() pass none on",
                          what));
}

SumsGraph graph_of_sums(const std::string& what, const DescribeSums& describe, const EvaluatedShapes& shapes,
                        ElementsOfSum elements, std::size_t kept_axes) {
  SumsBuilder sums(what, shapes, GraphArray::Source::input);
  const std::vector<Value> values = described(what, describe, sums);
  if (values.empty()) throw Error(ErrorCode::invalid_argument, fmt::format("{} has no sums; return one or more", what));
  std::vector<std::size_t> of_sums;
  for (const Value& value : values) of_sums.push_back(sums.add(value, elements, kept_axes));
  SumsGraph result = {.graph = std::move(sums.builder().graph()),
                      .elements = std::move(of_sums),
                      .differentiated = {},
                      .has_weights = shapes.weights.has_value()};
  result.graph.first_backward = result.graph.operations.size();
  return result;
}

ValueProgram::ValueProgram(SumsGraph graph, compute::Backend& backend)
    : graph_(std::move(graph)), backend_(backend), arena_(backend.memory()), scale_(backend.memory().allocate(1)) {}

std::unique_ptr<ModelPlan> ValueProgram::make_plan(std::int64_t samples) const {
  static const ArenaLayout kNone;
  // Losses take the outputs of the model as a parameter, so that they have a gradient; metrics as an input.
  const bool is_differentiated = !graph_.graph.parameter_gradients.empty();
  const MemoryOptions memory = {.samples = samples,
                                .inputs = SumsBuilder::kOutputsAsInput + 1,
                                .parameters = graph_.differentiated,
                                .buffers = kNone};
  return std::make_unique<ModelPlan>(graph_.graph, memory, backend_, is_differentiated);
}

std::size_t ValueProgram::planned_bytes(std::int64_t samples) const {
  const std::unique_ptr<ModelPlan> plan = make_plan(samples);
  return plan->arena_bytes() + plan->own_bytes_of_kernels();
}

void ValueProgram::prepare(std::int64_t samples, float scale, std::vector<std::uint64_t>& key) {
  const auto found =
      std::ranges::find_if(plans_, [&](const NumberedPlan& numbered) { return numbered.plan->samples() == samples; });
  if (found != plans_.end()) {
    // The newest comes first, so that the plan that is dropped is the one that was used the longest time ago.
    plans_.splice(plans_.begin(), plans_, found);
  } else {
    plans_.push_front({.plan = make_plan(samples), .number = plans_made_++});
    // A plan that is dropped keeps its number, so nothing is repeated for it by mistake.
    if (plans_.size() > kPlansKept) plans_.pop_back();
    arena_.grow_to(plans_.front().plan->arena_bytes() / sizeof(float));
  }
  // The scale is the same in all steps but an epoch's last one.
  if (known_scale_ != scale) backend_.memory().copy_from_host({&scale, 1}, {scale_.get(), 1});
  known_scale_ = scale;
  key.push_back(plans_.front().number);
  key.push_back(reinterpret_cast<std::uintptr_t>(arena_.data()));
}

void ValueProgram::run(const Arrays& arrays) {
  ModelPlan& plan = *plans_.front().plan;
  HOLDFAST_ASSERT(graph_.has_weights == (arrays.weights != nullptr));
  // A plan writes to none of the arrays that are constant here.
  const auto bytes = [](const float* array) { return reinterpret_cast<std::byte*>(const_cast<float*>(array)); };
  ModelPlan::Bases bases(static_cast<std::size_t>(Base::first_external), nullptr);
  bases[static_cast<std::size_t>(Base::arena)] = bytes(arena_.data());
  bases[static_cast<std::size_t>(Base::parameters)] = bytes(arrays.outputs);
  bases[static_cast<std::size_t>(Base::gradients)] = bytes(arrays.gradient);
  // In the order of kTargets, kWeights and kOutputsAsInput; then the gradient of the only output of a loss.
  bases.insert(bases.end(), {bytes(arrays.targets), bytes(arrays.weights), bytes(arrays.outputs), bytes(scale_.get())});
  const BeforeOperation before = [](const std::string&) {};
  plan.forward(bases, before);
  // Sums follow one another in the order of the graph's outputs.
  float* next = arrays.sums;
  for (std::size_t index = 0; index < graph_.graph.outputs.size(); ++index) {
    const std::size_t count = graph_.elements[index];
    backend_.memory().copy({reinterpret_cast<const float*>(plan.output(index, bases)), count}, {next, count});
    next += count;
  }
  if (arrays.gradient == nullptr) return;
  // One part: no other rank waits for the gradient of outputs.
  for (const BackwardPart& part : plan.backward_parts(std::numeric_limits<std::size_t>::max())) {
    plan.backward(part, bases, before);
  }
}

}  // namespace holdfast
