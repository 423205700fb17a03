// Forward and backward pass through time are an operation each: a graph of single steps would have thousands of small
// ones. What steps hand to each other lies step by step in memory, [steps, samples, ...], so that a product reads rows
// without gaps; what the graph sees is [samples, steps, ...]. Gradients of weights are one product over all steps and
// samples at the end, and so sums have one order. docs/decisions/layers.md

#include "nn/operations/sequences/recurrence.h"

#include "holdfast/base/error.h"
#include "nn/graph/operation.h"

namespace holdfast {

namespace {

using compute::CellKind;
using compute::CellsBackward;
using compute::CellsForward;
using compute::RecurrentCells;

enum ForwardInput : std::size_t { kX, kKernel, kBias, kMask, kState, kCell, kInputs };
// kKept, kStates and kCells are what the backward pass reads. kProduct is the product of one step: it is an output so
// that the plan finds memory for it, and nothing reads it later. kThrough is the same in the backward pass.
enum ForwardOutput : std::size_t { kSequence, kLastState, kLastCell, kKept, kStates, kCells, kProduct };
// The backward pass has the inputs 1 to 3 of the forward pass, and these.
enum BackwardInput : std::size_t { kBackKept, kBackStates = 4, kBackCells, kOfSequence, kOfState, kOfCell };
enum BackwardOutput : std::size_t { kOfX, kOfKernel, kOfBias, kOfFirstState, kOfFirstCell, kOfProducts, kThrough };

// Shapes of one sample.
struct SequenceExtents {
  std::int64_t steps;
  std::int64_t units;
  std::int64_t gates;  // times units
};

RecurrentCells cells_of(const RecurrenceOptions& options, const SequenceExtents& extents, std::int64_t samples) {
  return {.kind = options.kind,
          .activation = options.activation,
          .recurrent_activation = options.recurrent_activation,
          .samples = samples,
          .units = extents.units,
          .steps = extents.steps};
}

SequenceExtents extents_of(const ValueSpec& x, const ValueSpec& kernel) {
  return {.steps = x.shape[0], .units = kernel.shape[0], .gates = x.shape[1]};
}

ValueSpec of_samples(Shape shape) {
  return {.shape = std::move(shape), .dtype = DType::f32};
}

// Step by step: where the arrays of step number `index`, in the order of time, begin.
class Steps {
 public:
  Steps(const RecurrentCells& cells, bool is_reversed) : cells_(cells), is_reversed_(is_reversed) {}

  // In an array [steps, samples, floats].
  std::int64_t in_time(std::int64_t index, std::int64_t floats) const { return index * cells_.samples * floats; }
  // In an array [samples, steps, floats], for sample 0.
  // In reverse, the first step in time is the last of the sequence. So an output lies where its input does.
  std::int64_t in_sample(std::int64_t index, std::int64_t floats) const {
    return (is_reversed_ ? cells_.steps - 1 - index : index) * floats;
  }

 private:
  const RecurrentCells cells_;
  const bool is_reversed_;
};

compute::StridedCopy whole_copy(std::int64_t floats) {
  return {.axes = 1, .extents = {floats}, .from_strides = {1}, .to_strides = {1}};
}

template <class Float>
Float* moved(Float* array, std::int64_t floats) {
  return array == nullptr ? nullptr : array + floats;
}

class ForwardKernel final : public Kernel {
 public:
  ForwardKernel(const RecurrenceOptions& options, const SequenceExtents& extents, const KernelMaker& maker)
      : backend_(maker.backend),
        cells_(cells_of(options, extents, maker.samples)),
        steps_(cells_, options.is_reversed),
        has_sequence_(options.has_sequence),
        product_(maker.backend.repeated_product({.rows = maker.samples,
                                                 .inputs = extents.units,
                                                 .outputs = extents.gates,
                                                 .has_bias = maker.inputs[kBias].has_value()})) {}

  void run(const KernelArrays& arrays) override {
    const std::int64_t units = cells_.units;
    const std::int64_t gates = cells_.gates() * units;
    const bool has_cells = cells_.kind == CellKind::lstm;
    begin(arrays.input(kState), arrays.output(kStates));
    if (has_cells) begin(arrays.input(kCell), arrays.output(kCells));
    // Once a pass: the weights change between passes alone, and a back end may bring them into another order here.
    product_->set_kernel(arrays.input(kKernel));
    float* const sequence = has_sequence_ ? arrays.output(kSequence) : nullptr;
    float* const kept = cells_.kept() > 0 ? arrays.output(kKept) : nullptr;
    float* const cells = has_cells ? arrays.output(kCells) : nullptr;
    // States are one more than steps: step t reads entry t and writes entry t + 1. Entry 0 is the initial state.
    for (std::int64_t step = 0; step < cells_.steps; ++step) {
      float* const state = arrays.output(kStates) + steps_.in_time(step, units);
      product_->run(state, arrays.input(kBias), arrays.output(kProduct));
      backend_.array_kernels().cells_forward(cells_, {.x = arrays.input(kX) + steps_.in_sample(step, gates),
                                                      .mask = moved(arrays.input(kMask), steps_.in_sample(step, 1)),
                                                      .s = arrays.output(kProduct),
                                                      .state = state,
                                                      .cell = moved(cells, steps_.in_time(step, units)),
                                                      .kept = moved(kept, steps_.in_time(step, cells_.kept() * units)),
                                                      .next_state = state + steps_.in_time(1, units),
                                                      .next_cell = moved(cells, steps_.in_time(step + 1, units)),
                                                      .output = moved(sequence, steps_.in_sample(step, units))});
    }
    end(arrays.output(kStates), arrays.output(kLastState));
    if (has_cells) end(cells, arrays.output(kLastCell));
  }

 private:
  std::int64_t floats() const { return cells_.samples * cells_.units; }

  void begin(const float* given, float* states) {
    if (given != nullptr) return backend_.array_kernels().copy(whole_copy(floats()), given, states);
    backend_.memory().fill_zero({states, static_cast<std::size_t>(floats())});
  }
  void end(const float* states, float* last) {
    backend_.array_kernels().copy(whole_copy(floats()), states + steps_.in_time(cells_.steps, cells_.units), last);
  }

  compute::Backend& backend_;
  const RecurrentCells cells_;
  const Steps steps_;
  const bool has_sequence_;
  const std::unique_ptr<compute::RepeatedProductOperation> product_;
};

class BackwardKernel final : public Kernel {
 public:
  BackwardKernel(const RecurrenceOptions& options, const SequenceExtents& extents, const KernelMaker& maker)
      : backend_(maker.backend),
        cells_(cells_of(options, extents, maker.samples)),
        steps_(cells_, options.is_reversed),
        through_(maker.backend.repeated_product(
            {.rows = maker.samples, .inputs = extents.gates, .outputs = extents.units, .is_transposed = true})) {
    // A row for each step and sample. The states before the steps are the first entries of kStates; the last one, after
    // all steps, was multiplied by nothing.
    const std::int64_t rows = maker.samples * extents.steps;
    // transpose([rows, units]) [rows, gates]
    kernel_gradient_ = maker.backend.batched_product({.rows = extents.units,
                                                      .inner = rows,
                                                      .columns = extents.gates,
                                                      .left = {.row = 1, .column = extents.units},
                                                      .right = {.row = extents.gates, .column = 1},
                                                      .result = {.row = extents.gates, .column = 1}});
  }

  void run(const KernelArrays& arrays) override {
    const std::int64_t units = cells_.units;
    const std::int64_t gates = cells_.gates() * units;
    const float* const cells = arrays.input(kBackCells);
    const bool has_cells = cells_.kind == CellKind::lstm;
    float* const of_products = arrays.output(kOfProducts);
    // Gradients travel back in these two arrays, from step to step. After the first step in time they are what their
    // names say.
    float* const carried = arrays.output(kOfFirstState);
    float* const carried_cell = has_cells ? arrays.output(kOfFirstCell) : nullptr;
    // The same kernel transposed: from gates back to units.
    through_->set_kernel(arrays.input(kKernel));
    // Gradients of the last state and cell are where the way back begins.
    begin(arrays.input(kOfState), carried);
    if (has_cells) begin(arrays.input(kOfCell), carried_cell);
    for (std::int64_t step = cells_.steps; step-- > 0;) {
      const bool is_last = step + 1 == cells_.steps;
      const float* const state = arrays.input(kBackStates) + steps_.in_time(step, units);
      float* const of_product = of_products + steps_.in_time(step, gates);
      backend_.array_kernels().cells_backward(
          cells_, {.mask = moved(arrays.input(kMask), steps_.in_sample(step, 1)),
                   .kept = moved(arrays.input(kBackKept), steps_.in_time(step, cells_.kept() * units)),
                   .state = state,
                   .cell = moved(cells, steps_.in_time(step, units)),
                   .next_state = state + steps_.in_time(1, units),
                   .next_cell = moved(cells, steps_.in_time(step + 1, units)),
                   .output_gradient = moved(arrays.input(kOfSequence), steps_.in_sample(step, units)),
                   .through_product = is_last ? nullptr : arrays.output(kThrough),
                   .carried = carried,
                   .carried_cell = carried_cell,
                   .x_gradient = arrays.output(kOfX) + steps_.in_sample(step, gates),
                   .s_gradient = of_product});
      // What the step before gets through the product of this one.
      through_->run(of_product, nullptr, arrays.output(kThrough));
    }
    // No step made the first state, so its two parts are added up here.
    add_to(arrays.output(kThrough), carried);
    kernel_gradient_->run(arrays.input(kBackStates), of_products, arrays.output(kOfKernel));
    // The bias is added in each step, so its gradient is the sum over all rows.
    if (arrays.input(kBias) == nullptr) return;
    backend_.array_kernels().reduce(
        {.kind = compute::ReductionKind::sum, .reduced = cells_.samples * cells_.steps, .inner = gates}, of_products,
        arrays.output(kOfBias));
  }

 private:
  std::int64_t floats() const { return cells_.samples * cells_.units; }

  void begin(const float* given, float* to) {
    if (given != nullptr) return backend_.array_kernels().copy(whole_copy(floats()), given, to);
    backend_.memory().fill_zero({to, static_cast<std::size_t>(floats())});
  }

  void add_to(const float* summand, float* sum) {
    compute::ElementProgram program;
    program.instructions[0] = {.function = compute::ElementFunction::add, .operands = {{.index = 0}, {.index = 1}}};
    program.instruction_count = 1;
    program.input_count = 2;
    program.output_count = 1;
    const compute::ElementShape shape = {.axes = 1, .extents = {floats()}, .strides = {{1}, {1}}};
    const float* const inputs[] = {summand, sum};
    float* const outputs[] = {sum};
    backend_.array_kernels().elements(program, shape, inputs, outputs);
  }

  compute::Backend& backend_;
  const RecurrentCells cells_;
  const Steps steps_;
  const std::unique_ptr<compute::RepeatedProductOperation> through_;
  std::unique_ptr<compute::BatchedProductOperation> kernel_gradient_;
};

class RecurrenceBackward final : public Operation {
 public:
  RecurrenceBackward(const RecurrenceOptions& options, const SequenceExtents& extents)
      : options_(options), extents_(extents) {}

  std::string name() const override { return "gradients of recurrence"; }
  // In the order of BackwardOutput, by whose numbers gradient() of the forward pass takes them.
  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    const ValueSpec state = of_samples({extents_.units});
    const ValueSpec x = of_samples({extents_.steps, extents_.gates});
    return {x,
            *inputs[kKernel],
            inputs[kBias] ? *inputs[kBias] : kNotComputed,
            state,
            options_.kind == CellKind::lstm ? state : kNotComputed,
            x,
            state};
  }
  std::vector<MaybeValue> gradient(const GradientRequest&) const override { HOLDFAST_ASSERT(false); }
  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    return std::make_unique<BackwardKernel>(options_, extents_, maker);
  }

 private:
  const RecurrenceOptions options_;
  const SequenceExtents extents_;
};

// Layers alone make it: it stands in no file, so its operands were checked.
class RecurrenceForward final : public Operation {
 public:
  explicit RecurrenceForward(const RecurrenceOptions& options) : options_(options) {}

  std::string name() const override { return "recurrence"; }
  std::string arithmetic(const compute::Backend& backend) const override {
    return backend.repeated_product_arithmetic();
  }

  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    const SequenceExtents extents = extents_of(*inputs[kX], *inputs[kKernel]);
    const RecurrentCells cells = cells_of(options_, extents, 1);
    HOLDFAST_ASSERT(extents.gates == cells.gates() * extents.units && inputs[kKernel]->shape[1] == extents.gates);
    const bool has_cells = options_.kind == CellKind::lstm;
    const ValueSpec state = of_samples({extents.units});
    const ValueSpec states = of_samples({extents.steps + 1, extents.units});
    return {options_.has_sequence ? of_samples({extents.steps, extents.units}) : kNotComputed,
            state,
            has_cells ? state : kNotComputed,
            cells.kept() > 0 ? of_samples({extents.steps, cells.kept() * extents.units}) : kNotComputed,
            states,
            has_cells ? states : kNotComputed,
            of_samples({extents.gates})};
  }

  std::vector<MaybeValue> gradient(const GradientRequest& request) const override {
    const SequenceExtents extents = extents_of(request.inputs[kX]->spec(), request.inputs[kKernel]->spec());
    const bool has_cells = options_.kind == CellKind::lstm;
    const bool has_kept = cells_of(options_, extents, 1).kept() > 0;
    const std::vector<Value> gradients =
        apply(std::make_shared<const RecurrenceBackward>(options_, extents),
              {has_kept ? MaybeValue(request.outputs[kKept]) : std::nullopt, request.inputs[kKernel],
               request.inputs[kBias], request.inputs[kMask], request.outputs[kStates],
               has_cells ? MaybeValue(request.outputs[kCells]) : std::nullopt, request.output_gradients[kSequence],
               request.output_gradients[kLastState], request.output_gradients[kLastCell]});
    // A mask is 0 or not, and has no gradient.
    std::vector<MaybeValue> by_input(kInputs);
    const auto set = [&](ForwardInput input, BackwardOutput output) {
      if (request.needed[input]) by_input[input] = gradients[output];
    };
    set(kX, kOfX);
    set(kKernel, kOfKernel);
    set(kBias, kOfBias);
    set(kState, kOfFirstState);
    set(kCell, kOfFirstCell);
    return by_input;
  }

  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    return std::make_unique<ForwardKernel>(options_, extents_of(*maker.inputs[kX], *maker.inputs[kKernel]), maker);
  }

 private:
  const RecurrenceOptions options_;
};

}  // namespace

RecurrenceOutputs recurrence(const RecurrenceInputs& inputs, const RecurrenceOptions& options) {
  const std::vector<Value> outputs =
      apply(std::make_shared<const RecurrenceForward>(options),
            {inputs.x, inputs.recurrent_kernel, inputs.recurrent_bias, inputs.mask, inputs.state, inputs.cell});
  return {.sequence = options.has_sequence ? MaybeValue(outputs[kSequence]) : std::nullopt,
          .state = outputs[kLastState],
          .cell = options.kind == CellKind::lstm ? MaybeValue(outputs[kLastCell]) : std::nullopt};
}

}  // namespace holdfast
