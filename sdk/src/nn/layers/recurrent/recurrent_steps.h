#pragma once

// The steps of a recurrent layer one by one, for the options that recurrence() does not have.

#include <vector>

#include "nn/operations/sequences/recurrence.h"

namespace holdfast {

struct RecurrentStepOptions {
  // By gate: what the state is multiplied by, [units], before its product. Empty: by nothing.
  std::vector<Value> state_masks = {};
  // A gru resets the state before its product, instead of the product. It has no bias of the recurrent kernel then.
  bool resets_before = false;
};

// As recurrence(), with these. The model has some ten operations for each step.
RecurrenceOutputs recurrence_step_by_step(const RecurrenceInputs& inputs, const RecurrenceOptions& options,
                                          const RecurrentStepOptions& step_options);

}  // namespace holdfast
