#pragma once

// The state of a savepoint's optimizer as Keras lists it.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "holdfast/format/array_set.h"
#include "keras_files/keras_json.h"
#include "keras_files/keras_optimizer_table.h"

namespace holdfast::format {

// Keras lists the arrays of `first`, then the slots of all passes, then the arrays of `last`.
struct KerasOptimizerState {
  std::vector<NamedArray> first;           // the iteration, and the rate unless it follows a schedule
  std::vector<KerasOptimizerPass> passes;  // empty for an optimizer that Keras lacks
  Json options;                            // of the savepoint's optimizer
  std::int64_t step = 0;                   // updates so far
  std::vector<NamedArray> last;            // what Keras multiplies step by step, and Holdfast computes from the step
};

// The step from which the optimizer counts its updates: that of the run's last compile(), or 0.
std::int64_t step_of_last_compile(const Json& metadata);

// The state of the optimizer in "configuration" at the "step" of a savepoint's metadata.
KerasOptimizerState keras_optimizer_state(const Json& metadata);

// A slot of one of the trainable variables, which are counted from 0.
struct SlotOfVariable {
  std::size_t variable;
  KerasOptimizerSlot slot;
};

// A trainable variable, by its name and shape in the savepoint.
struct TrainableVariable {
  std::string array;  // "dense/kernel"
  std::vector<std::uint64_t> shape;
};

// The slots of these variables, in Keras's order.
std::vector<SlotOfVariable> slots_in_keras_order(const KerasOptimizerState& state,
                                                 std::span<const TrainableVariable> variables);

// The bytes of a savepoint's array "optimizer/<slot>/..." before the first step: zeros, unless the optimizer's options
// say something else. Moving averages begin as the parameters, which are among `all` arrays of the savepoint.
std::vector<std::byte> initial_slot_bytes(const NamedArray& array, std::span<const NamedArray> all,
                                          const Json& metadata);

}  // namespace holdfast::format
