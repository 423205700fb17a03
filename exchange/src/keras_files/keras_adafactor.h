#pragma once

// The state of Adafactor, which keeps two factors in place of a matrix. In Keras a factor lacks an axis of the
// parameter, and arrays of fewer than two axes have a scalar 0 instead. In a savepoint each slot has the shape of the
// parameter, so a factor is repeated along the axis that it lacks.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "holdfast/format/array_set.h"
#include "keras_files/keras_optimizer_table.h"

namespace holdfast::format {

// The shape that Keras gives a slot of a parameter of this shape.
std::vector<std::uint64_t> keras_slot_shape(SlotKind kind, std::span<const std::uint64_t> parameter);

// Keras's array for the slots "row_velocity" and "column_velocity" of a savepoint, which are f32 and of one shape. The
// product of the factors is 0 before the first step, as in Keras. For a SlotKind of Adafactor.
NamedArray keras_adafactor_slot(SlotKind kind, const NamedArray& rows, const NamedArray& columns);

// The savepoint's array, in the shape of the parameter; empty where a savepoint has nothing for this slot: for the
// scalar of a short array, and for a product of factors. `slot` has the shape that Keras gives it.
std::optional<NamedArray> savepoint_adafactor_slot(SlotKind kind, const NamedArray& slot,
                                                   std::span<const std::uint64_t> parameter);

}  // namespace holdfast::format
