#pragma once

// A recurrent layer through all steps of a sequence, after the products of its inputs.

#include "compute/recurrent_cells.h"
#include "nn/graph/value_node.h"

namespace holdfast {

struct RecurrenceOptions {
  compute::CellKind kind = compute::CellKind::lstm;
  Activation activation = Activation::tanh;
  Activation recurrent_activation = Activation::sigmoid;
  bool is_reversed = false;  // from the last step to the first; outputs stay where their inputs are
  bool has_sequence = true;  // whether the output of each step is wanted
};

struct RecurrenceInputs {
  Value x;                    // [steps, gates * units], the products of the inputs
  Value recurrent_kernel;     // [units, gates * units], without samples
  MaybeValue recurrent_bias;  // [gates * units], without samples
  MaybeValue mask;            // [steps], 0 where a step is skipped
  MaybeValue state;           // [units], before the first step; else zeros
  MaybeValue cell;            // likewise, of an lstm
};

struct RecurrenceOutputs {
  MaybeValue sequence;  // [steps, units]: the state after each step
  Value state;          // [units], after the last step
  MaybeValue cell;
};

RecurrenceOutputs recurrence(const RecurrenceInputs& inputs, const RecurrenceOptions& options);

}  // namespace holdfast
