// An operation is a program of one instruction. Its gradient is described with the same operations, so that no function
// needs a backward kernel. Where the gradient can be computed from the output, it is: then the memory of the input is
// free earlier. docs/decisions/models.md

#include "nn/operations/elements.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "compute/arithmetic/exponential.h"
#include "holdfast/nn/functions.h"
#include "nn/graph/operation.h"
#include "nn/operations/operation_registry.h"
#include "nn/operations/strides.h"

namespace holdfast {

using compute::ElementFunction;

ValueSpec broadcast_spec(const ValueSpec& a, const ValueSpec& b) {
  // The rules are those of NumPy. Samples are not an axis here: a value without them is repeated for each sample.
  const std::size_t rank = std::max(a.shape.rank(), b.shape.rank());
  std::vector<std::int64_t> extents(rank, 1);
  for (const ValueSpec* const spec : {&a, &b}) {
    const std::size_t missing = rank - spec->shape.rank();
    for (std::size_t axis = 0; axis < spec->shape.rank(); ++axis) {
      std::int64_t& extent = extents[missing + axis];
      if (extent == 1) extent = spec->shape[axis];
      if (spec->shape[axis] == extent || spec->shape[axis] == 1) continue;
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("shapes {} and {} cannot be broadcast: aligned at their last axes, extents must be equal "
                              "or 1; reshape() one of them first",
                              a.shape.to_string(), b.shape.to_string()));
    }
  }
  return {.shape = Shape(std::move(extents)), .dtype = a.dtype, .has_samples = a.has_samples || b.has_samples};
}

namespace {

// Checks of shapes take more than one sample, so that samples count as an axis of their own.
constexpr std::int64_t kAnySamples = 2;

// Arguments that are values, in order, and constants at their places.
class ElementOperation final : public Operation {
 public:
  ElementOperation(ElementFunction function, std::vector<std::optional<float>> constants)
      : function_(function), constants_(std::move(constants)) {}

  std::string name() const override { return std::string(name_of(function_)); }
  bool is_sample_wise() const override { return true; }

  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    ValueSpec spec = *inputs[0];
    for (const auto& input : inputs) {
      spec = broadcast_spec(spec, *input);
    }
    element_shape(inputs, spec, kAnySamples);  // refuses too many axes
    return {spec};
  }

  std::optional<std::size_t> overwritable_input() const override { return 0; }
  std::optional<ElementPart> element_part() const override {
    return ElementPart{.function = function_, .constants = constants_};
  }
  bool passes_gradient() const override {
    using enum ElementFunction;
    // These functions are constant between their steps, so their derivative is 0 wherever it exists.
    return function_ != sign && function_ != ElementFunction::less && function_ != ElementFunction::less_equal &&
           function_ != ElementFunction::equal;
  }
  std::vector<MaybeValue> gradient(const GradientRequest& request) const override;
  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override;
  bool takes_inputs(std::size_t count) const override {
    // Arguments that are not constants are inputs.
    return count == static_cast<std::size_t>(std::count(constants_.begin(), constants_.end(), std::nullopt));
  }
  // The constants by argument, null where the argument is a value.
  void write_config(ConfigWriter& config) const override {
    for (const std::optional<float>& constant : constants_) {
      if (!constant || std::isfinite(*constant)) continue;
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("the constant {} outside of a layer cannot be written to files, which hold finite numbers; "
                      "use a large number such as -1e9F, or describe a layer whose build() has the constant",
                      *constant));
    }
    config.numbers("constants", constants_);
  }

 private:
  std::vector<ElementArgument> arguments(const GradientRequest& request) const;
  std::vector<MaybeValue> gradients_of_arguments(const Value& g, const Value& y,
                                                 const std::vector<ElementArgument>& arguments) const;

  const ElementFunction function_;
  const std::vector<std::optional<float>> constants_;  // by argument; missing where it is a value
};

Value apply_function(ElementFunction function, const std::vector<ElementArgument>& arguments) {
  return element_function(function, arguments);
}

std::vector<ElementArgument> ElementOperation::arguments(const GradientRequest& request) const {
  // Constants keep their places among the arguments, and inputs fill the others in order.
  std::vector<ElementArgument> arguments;
  std::size_t input = 0;
  for (const std::optional<float>& constant : constants_) {
    if (constant) {
      arguments.emplace_back(*constant);
    } else {
      arguments.emplace_back(*request.inputs[input++]);
    }
  }
  return arguments;
}

// The slope of a^e to a is e a^(e - 1). Missing where it is 0 everywhere.
MaybeValue gradient_of_base(const Value& g, const ElementArgument& a, const ElementArgument& e) {
  using enum ElementFunction;
  const auto slope = [&](const ElementArgument& lowered) {
    return apply_function(multiply, {e, apply_function(ElementFunction::power, {a, lowered})});
  };
  // At a = 0, an exponent of 0 would make 0 times infinity of a slope that is 0.
  if (const float* const constant = std::get_if<float>(&e)) {
    // A constant exponent is lowered here, once.
    return *constant == 0 ? MaybeValue() : MaybeValue(g * slope(*constant - 1));
  }
  const Value lowered = apply_function(subtract, {e, 1.0F});
  return apply_function(select, {apply_function(ElementFunction::equal, {e, 0.0F}), 0.0F, g * slope(lowered)});
}

// The slope of y = a^e to e is y log(a).
Value gradient_of_exponent(const Value& g, const Value& y, const ElementArgument& a, const ElementArgument& e) {
  using enum ElementFunction;
  const auto times_slope = [&](const ElementArgument& logarithm_of_base) {
    return g * apply_function(multiply, {y, logarithm_of_base});
  };
  const float* const constant = std::get_if<float>(&a);
  // libm's logarithm has other bits in each version.
  if (constant != nullptr && *constant != 0) return times_slope(compute::logarithm(*constant));
  if (constant == nullptr && std::holds_alternative<float>(e)) {
    return times_slope(apply_function(ElementFunction::logarithm, {a}));
  }
  // 0^e is 0 for each exponent above 0, so its slope is 0 and not 0 times the logarithm of 0. PyTorch counts an
  // exponent of 0 among them.
  const ElementArgument logarithm_of_base = constant != nullptr
                                                ? ElementArgument(compute::logarithm(0.0F))
                                                : ElementArgument(apply_function(ElementFunction::logarithm, {a}));
  const Value is_flat = apply_function(ElementFunction::less_equal, {0.0F, e});
  const Value is_zero = constant != nullptr ? is_flat : is_flat * apply_function(ElementFunction::equal, {a, 0.0F});
  return apply_function(select, {is_zero, 0.0F, times_slope(logarithm_of_base)});
}

// The function that is the slope of a function, for those of which it has a name of its own.
static ElementFunction slope_function_of(ElementFunction function) {
  using enum ElementFunction;
  if (function == absolute) return sign;
  if (function == ElementFunction::gelu) return gelu_slope;
  if (function == ElementFunction::gelu_tanh) return gelu_tanh_slope;
  if (function == ElementFunction::silu) return silu_slope;
  // The slope of log(1 + e^x) is e^x / (1 + e^x).
  HOLDFAST_ASSERT(function == ElementFunction::softplus);
  return ElementFunction::sigmoid;
}

// The gradients of two operands, of which the first one was chosen where `is_first` is 1.
static std::vector<MaybeValue> gradients_of_chosen(const Value& g, const Value& is_first) {
  using enum ElementFunction;
  return {apply_function(select, {is_first, g, 0.0F}), apply_function(select, {is_first, 0.0F, g})};
}

// By argument; missing where there is none.
std::vector<MaybeValue> ElementOperation::gradients_of_arguments(const Value& g, const Value& y,
                                                                 const std::vector<ElementArgument>& of) const {
  using enum ElementFunction;
  const ElementArgument& a = of[0];
  const auto times = [&](const ElementArgument& factor) { return apply_function(multiply, {g, factor}); };
  // Gradients of constants are described too. They cost nothing, because only what is asked for is appended to a graph.
  switch (function_) {
    case copy:
      return {g};
    case negative:
      return {-g};
    case ElementFunction::square:
      return {times(apply_function(multiply, {a, 2.0F}))};
    case ElementFunction::square_root:
      // The slope is 1 / (2 y).
      return {apply_function(divide, {g, y}) * 0.5F};
    case ElementFunction::reciprocal_root:
      // The slope of x^-1/2 is -1/2 x^-3/2.
      return {g * (y * y * y) * -0.5F};
    case ElementFunction::exponential:
      return {g * y};
    case ElementFunction::logarithm:
      return {apply_function(divide, {g, a})};
    case ElementFunction::relu:
      // A selection, and not a product: g may be infinite where y is 0.
      return {apply_function(select, {apply_function(ElementFunction::less, {0.0F, y}), g, 0.0F})};
    case ElementFunction::sigmoid:
      // The slopes of sigmoid and tanh are polynomials of their values.
      return {g * (y * (1.0F - y))};
    case ElementFunction::tanh:
      return {g * (1.0F - y * y)};
    case absolute:
    case ElementFunction::gelu:
    case ElementFunction::gelu_tanh:
    case ElementFunction::silu:
    case ElementFunction::softplus:
      return {apply_function(multiply, {g, apply_function(slope_function_of(function_), {a})})};
    case add:
      return {g, g};
    case subtract:
      return {g, -g};
    case multiply:
      return {times(of[1]), times(a)};
    case divide:
      // With y = a / b, the slope to b is -y / b, which needs neither a nor the square of b.
      return {apply_function(divide, {g, of[1]}), -apply_function(divide, {g * y, of[1]})};
    case ElementFunction::power:
      return {gradient_of_base(g, a, of[1]), gradient_of_exponent(g, y, a, of[1])};
    // The first of equal operands gets the gradient.
    case ElementFunction::minimum:
      return gradients_of_chosen(g, apply_function(ElementFunction::less_equal, {a, of[1]}));
    case ElementFunction::maximum:
      return gradients_of_chosen(g, apply_function(ElementFunction::less_equal, {of[1], a}));
    case select:
      return {std::nullopt, apply_function(select, {a, g, 0.0F}), apply_function(select, {a, 0.0F, g})};
    case sign:
    case ElementFunction::less:
    case ElementFunction::less_equal:
    case ElementFunction::equal:
      return {};
    case gelu_slope:
    case gelu_tanh_slope:
    case silu_slope:
      break;
  }
  // Higher derivatives are not offered.
  HOLDFAST_ASSERT(false);
}

std::vector<MaybeValue> ElementOperation::gradient(const GradientRequest& request) const {
  const std::vector<MaybeValue> by_argument =
      gradients_of_arguments(*request.output_gradients[0], request.outputs[0], arguments(request));
  std::vector<MaybeValue> by_input;
  for (std::size_t argument = 0; argument < by_argument.size(); ++argument) {
    if (constants_[argument]) continue;
    // A gradient that is missing keeps its place, so that gradients and inputs have the same numbers.
    const std::size_t input = by_input.size();
    // An operand that was repeated gets the sum over its repetitions.
    const bool is_wanted = request.needed[input] && by_argument[argument];
    by_input.push_back(is_wanted ? MaybeValue(sum_to(*by_argument[argument], request.inputs[input]->spec()))
                                 : std::nullopt);
  }
  return by_input;
}

std::unique_ptr<Kernel> make_program_kernel(const compute::ElementProgram& program, const KernelMaker& maker) {
  const compute::ElementShape shape = element_shape(maker.inputs, *maker.outputs[0], maker.samples);
  compute::ArrayKernels& kernels = maker.backend.array_kernels();
  return make_function_kernel([&kernels, program, shape](const KernelArrays& arrays) {
    // The pointers lie on the stack, so a pass allocates nothing.
    std::array<const float*, compute::ElementProgram::kMaximumInputs> inputs{};
    for (std::size_t i = 0; i < program.input_count; ++i) inputs[i] = arrays.input(i);
    float* const output = arrays.output(0);
    kernels.elements(program, shape, std::span(inputs).first(program.input_count), {&output, 1});
  });
}

std::unique_ptr<Kernel> ElementOperation::make_kernel(const KernelMaker& maker) const {
  compute::ElementProgram program;
  program.input_count = static_cast<std::uint8_t>(maker.inputs.size());
  // A plan may join this operation with others (fusion.cpp). This is the program of one that stays alone.
  program.instruction_count = 1;
  program.output_count = 1;
  program.instructions[0].function = function_;
  std::uint8_t input = 0;
  for (std::size_t argument = 0; argument < constants_.size(); ++argument) {
    compute::ElementOperand& operand = program.instructions[0].operands[argument];
    if (constants_[argument]) {
      program.constants[program.constant_count] = *constants_[argument];
      operand = {compute::ElementOperand::Kind::constant, program.constant_count++};
    } else {
      operand = {compute::ElementOperand::Kind::input, input++};
    }
  }
  return make_program_kernel(program, maker);
}

// Made by a plan, so it has no gradient and stands in no file.
class ElementProgramOperation final : public Operation {
 public:
  ElementProgramOperation(const compute::ElementProgram& program, ValueSpec output)
      : program_(program), output_(std::move(output)) {}

  std::string name() const override { return "elements"; }
  bool is_sample_wise() const override { return true; }
  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>>) const override { return {output_}; }
  std::optional<std::size_t> overwritable_input() const override { return 0; }
  std::vector<MaybeValue> gradient(const GradientRequest&) const override { HOLDFAST_ASSERT(false); }
  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    return make_program_kernel(program_, maker);
  }

 private:
  const compute::ElementProgram program_;
  const ValueSpec output_;
};

// Copies with repetition. Its output has a spec of its own.
class BroadcastOperation final : public Operation {
 public:
  explicit BroadcastOperation(ValueSpec spec) : spec_(std::move(spec)) {}

  std::string name() const override { return "broadcast"; }
  bool is_sample_wise() const override { return true; }
  std::optional<RowPart> row_part() const override { return RowPart{.kind = RowPart::Kind::broadcast}; }
  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    if (broadcast_spec(*inputs[0], spec_) != spec_) {
      throw Error(ErrorCode::invalid_argument, fmt::format("a value of shape {} cannot be broadcast to {}",
                                                           inputs[0]->shape.to_string(), spec_.shape.to_string()));
    }
    broadcasting_copy(*inputs[0], spec_, kAnySamples);  // refuses too many axes
    return {spec_};
  }
  std::vector<MaybeValue> gradient(const GradientRequest& request) const override {
    return {sum_to(*request.output_gradients[0], request.inputs[0]->spec())};
  }
  void write_config(ConfigWriter& config) const override {
    config.integers("shape", spec_.shape.extents());
    // Only weights have no samples. All other texts are those of before weights stood between layers.
    if (!spec_.has_samples) config.boolean("has_samples", false);
  }
  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    const compute::StridedCopy copy = broadcasting_copy(*maker.inputs[0], spec_, maker.samples);
    return make_function_kernel([&kernels = maker.backend.array_kernels(), copy](const KernelArrays& arrays) {
      kernels.copy(copy, arrays.input(0), arrays.output(0));
    });
  }

 private:
  const ValueSpec spec_;
};

// The output is the input; nothing flows back.
class StopGradientOperation final : public Operation {
 public:
  std::string name() const override { return "stop_gradient"; }
  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    return {*inputs[0]};
  }
  std::vector<MaybeValue> gradient(const GradientRequest&) const override { return {}; }
  void write_config(ConfigWriter&) const override {}
  // Nothing is computed, so the output may lie where the input lies.
  bool is_view() const override { return true; }
  bool passes_gradient() const override { return false; }
  std::unique_ptr<Kernel> make_kernel(const KernelMaker&) const override { return nullptr; }
};

}  // namespace

Value element_function(ElementFunction function, const std::vector<ElementArgument>& arguments) {
  std::vector<std::optional<float>> constants;
  std::vector<MaybeValue> inputs;
  for (const ElementArgument& argument : arguments) {
    // A constant becomes a part of the operation. It takes no memory, and a file holds it among the options.
    const float* const constant = std::get_if<float>(&argument);
    constants.push_back(constant == nullptr ? std::nullopt : std::optional(*constant));
    if (constant == nullptr) inputs.emplace_back(std::get<Value>(argument));
  }
  HOLDFAST_ASSERT(!inputs.empty());
  return apply_one(std::make_shared<const ElementOperation>(function, std::move(constants)), std::move(inputs));
}

std::shared_ptr<const Operation> make_element_program(const compute::ElementProgram& program, const ValueSpec& output) {
  return std::make_shared<const ElementProgramOperation>(program, output);
}

std::shared_ptr<const Operation> read_element_operation(ElementFunction function, ConfigReader& config) {
  using enum ElementFunction;
  if (function == gelu_slope || function == gelu_tanh_slope || function == silu_slope) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} has no gradient, so no model uses it", name_of(function)));
  }
  // The list of a file has a place for each operand. Without a value among them, the operation would have no shape.
  std::vector<std::optional<float>> constants = config.numbers("constants");
  const auto values = std::count(constants.begin(), constants.end(), std::nullopt);
  if (constants.size() != compute::operand_count(function) || values == 0) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} takes {} operands, of which one at least is not constant",
                                                         name_of(function), compute::operand_count(function)));
  }
  return std::make_shared<const ElementOperation>(function, std::move(constants));
}

std::shared_ptr<const Operation> read_broadcast(ConfigReader& config) {
  ValueSpec spec = {.shape = Shape(config.integers("shape"))};
  if (config.has("has_samples")) spec.has_samples = config.boolean("has_samples");
  return std::make_shared<const BroadcastOperation>(spec);
}

std::shared_ptr<const Operation> make_stop_gradient() {
  return std::make_shared<const StopGradientOperation>();
}

Value broadcast_to(const Value& x, const ValueSpec& spec) {
  return x.spec() == spec ? x : apply_one(std::make_shared<const BroadcastOperation>(spec), {x});
}

Value sum_to(const Value& x, const ValueSpec& spec) {
  if (x.spec() == spec) return x;
  // The order of the sums is a part of the bits: samples first, then the axes from the first one.
  Value result = x.has_samples() && !spec.has_samples ? sum_over_samples(x) : x;
  AxisList axes;
  const std::size_t missing = x.shape().rank() - spec.shape.rank();
  for (std::size_t axis = 0; axis < x.shape().rank(); ++axis) {
    // Axes that the spec lacks come first, because shapes are aligned at their last axes.
    const bool is_repeated = axis < missing || (spec.shape[axis - missing] == 1 && x.shape()[axis] != 1);
    if (is_repeated) axes.push_back(static_cast<std::int64_t>(axis));
  }
  if (!axes.empty()) result = sum(result, axes, ReducedAxes::keep);
  return result.shape() == spec.shape ? result : reshape(result, spec.shape.extents());
}

Value stop_gradient(const Value& x) {
  return apply_one(std::make_shared<const StopGradientOperation>(), {x});
}

Value broadcast(const Value& x, const Shape& shape) {
  return broadcast_to(x, {.shape = shape, .dtype = x.dtype(), .has_samples = x.has_samples()});
}

}  // namespace holdfast
