// One operation over all steps has kernels of its own on each back end. Draws of a mask for each gate, and a reset
// before the product, are rarely asked for, and cuDNN does not have them either. As functions of values they need no
// kernel, and their gradients follow. docs/decisions/sequences.md

#include "nn/layers/recurrent/recurrent_steps.h"

#include <utility>

#include "holdfast/base/error.h"
#include "holdfast/nn/functions.h"
#include "holdfast/nn/time_distributed.h"
#include "nn/operations/operations.h"

namespace holdfast {

namespace {

using compute::CellKind;

// A state, and the cell of an lstm.
struct State {
  Value state;
  MaybeValue cell;
};

class StepByStep {
 public:
  StepByStep(const RecurrenceInputs& inputs, const RecurrenceOptions& options, const RecurrentStepOptions& step_options)
      : inputs_(inputs), options_(options), step_options_(step_options), units_(inputs.recurrent_kernel.shape()[0]) {
    const std::int64_t gates = inputs.recurrent_kernel.shape()[1] / units_;
    for (std::int64_t gate = 0; gate < gates; ++gate) {
      // Each gate has a product of its own, since each may see the state through another mask.
      kernels_.push_back(columns(inputs.recurrent_kernel, 1, gate));
      biases_.push_back(inputs.recurrent_bias ? MaybeValue(columns(*inputs.recurrent_bias, 0, gate)) : std::nullopt);
    }
  }

  RecurrenceOutputs run() const {
    const std::int64_t steps = inputs_.x.shape()[0];
    State state = first_state();
    std::vector<MaybeValue> sequence(static_cast<std::size_t>(steps));
    for (std::int64_t number = 0; number < steps; ++number) {
      const std::int64_t step = options_.is_reversed ? steps - 1 - number : number;
      state = kept_where_masked(step, state, next(step_of(inputs_.x, step), state));
      sequence[static_cast<std::size_t>(step)] = state.state;
    }
    RecurrenceOutputs outputs = {.sequence = std::nullopt, .state = state.state, .cell = state.cell};
    if (!options_.has_sequence) return outputs;
    std::vector<Value> rows;
    for (const MaybeValue& row : sequence) rows.push_back(*row);
    outputs.sequence = stacked_steps(rows);
    return outputs;
  }

 private:
  // The part of a gate among units that follow each other gate by gate.
  Value columns(const Value& all, std::int64_t axis, std::int64_t gate) const {
    return slice(all, axis, gate * units_, (gate + 1) * units_);
  }

  State first_state() const {
    // Zeros in the shape of a state, also where the input is NaN.
    const Value like = columns(step_of(inputs_.x, 0), 0, 0);
    const Value zeros = less(like, like);
    State state = {.state = inputs_.state ? *inputs_.state : zeros, .cell = std::nullopt};
    if (options_.kind == CellKind::lstm) state.cell = inputs_.cell ? *inputs_.cell : zeros;
    return state;
  }

  // A skipped step hands on what it was given, as in the kernels of cells.
  State kept_where_masked(std::int64_t step, const State& before, const State& after) const {
    if (!inputs_.mask) return after;
    const Value is_kept = slice(*inputs_.mask, 0, step, step + 1);
    State state = {.state = where(is_kept, after.state, before.state), .cell = std::nullopt};
    if (after.cell) state.cell = where(is_kept, *after.cell, *before.cell);
    return state;
  }

  // The state as a gate takes it. The new state is made of the whole one: what is dropped is what gates see of it.
  Value masked(const Value& state, std::size_t gate) const {
    return step_options_.state_masks.empty() ? state : state * step_options_.state_masks[gate];
  }
  Value product(const Value& state, std::size_t gate) const { return dense(state, kernels_[gate], biases_[gate]); }
  // What a gate is a function of, if its two products are added.
  Value gate_sum(const Value& x, const Value& state, std::size_t gate) const {
    return columns(x, 0, static_cast<std::int64_t>(gate)) + product(masked(state, gate), gate);
  }
  Value gate_of(const Value& x, const Value& state, std::size_t gate) const {
    return activation(gate_sum(x, state, gate), options_.recurrent_activation);
  }

  State next(const Value& x, const State& before) const {
    switch (options_.kind) {
      case CellKind::simple:
        return {.state = activation(gate_sum(x, before.state, 0), options_.activation), .cell = std::nullopt};
      case CellKind::lstm:
        return next_of_lstm(x, before);
      case CellKind::gru:
        return {.state = next_of_gru(x, before.state), .cell = std::nullopt};
    }
    HOLDFAST_ASSERT(false);
  }

  State next_of_lstm(const Value& x, const State& before) const {
    const Value i = gate_of(x, before.state, 0);
    const Value f = gate_of(x, before.state, 1);
    const Value c = activation(gate_sum(x, before.state, 2), options_.activation);
    const Value o = gate_of(x, before.state, 3);
    const Value cell = f * *before.cell + i * c;
    return {.state = o * activation(cell, options_.activation), .cell = cell};
  }

  Value next_of_gru(const Value& x, const Value& state) const {
    const Value z = gate_of(x, state, 0);
    const Value r = gate_of(x, state, 1);
    // With reset_after, as with cuDNN, the reset multiplies the product and its bias; before, it multiplies the state.
    const Value of_state =
        step_options_.resets_before ? product(r * masked(state, 2), 2) : r * product(masked(state, 2), 2);
    const Value h = activation(columns(x, 0, 2) + of_state, options_.activation);
    return z * state + (1.0F - z) * h;
  }

  const RecurrenceInputs& inputs_;
  const RecurrenceOptions& options_;
  const RecurrentStepOptions& step_options_;
  const std::int64_t units_;
  std::vector<Value> kernels_;      // by gate
  std::vector<MaybeValue> biases_;  // likewise
};

}  // namespace

RecurrenceOutputs recurrence_step_by_step(const RecurrenceInputs& inputs, const RecurrenceOptions& options,
                                          const RecurrentStepOptions& step_options) {
  return StepByStep(inputs, options, step_options).run();
}

}  // namespace holdfast
