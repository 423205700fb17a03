#pragma once

// Weights of a model with its channels first, in the order of one with its channels last.

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "holdfast/format/array_set.h"
#include "keras_files/keras_model.h"

namespace holdfast::format {

// Of each variable (by KerasSlot::array) whose first axis runs over channels, rows and columns of a flattened image
// with its channels first: the index of the Flatten in front of it among the model's Flatten layers. Keras's own
// Flatten turns images round where it is told that their channels are first; where it is not, what comes behind it sees
// channels, rows, columns.
std::map<std::string, std::size_t> variables_behind_flatten(const KerasModel& model);

// Turns axis 0 from (channels, height, width) to (height, width, channels). `image` is height, width and channels.
// False where the axis has another extent.
bool reorder_rows(NamedArray& array, const std::array<std::uint64_t, 3>& image);

// The bytes as f32; false for types that f32 does not hold exactly.
bool widen_to_f32(NamedArray& array);

}  // namespace holdfast::format
