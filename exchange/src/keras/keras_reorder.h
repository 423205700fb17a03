#pragma once

// Reorders weights of a channels-first model for one with channels last.

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "holdfast/format/array_set.h"
#include "keras_files/keras_model.h"

namespace holdfast::format {

// Finds the variables (by KerasSlot::array) whose first axis runs over channels, rows and columns of a flattened
// channels-first image. Each is mapped to the index, among the model's Flatten layers, of the Flatten in front of it.
// Keras's own Flatten reorders images only if it knows that their channels are first. Otherwise the layers after it
// see channels, rows, columns.
std::map<std::string, std::size_t> variables_after_flatten(const KerasModel& model);

// Reorders axis 0 from (channels, height, width) to (height, width, channels). `image` is height, width and channels.
// Returns false if the axis has another extent.
bool reorder_rows(NamedArray& array, const std::array<std::uint64_t, 3>& image);

// Converts the array to f32. Returns false for types that f32 cannot hold exactly.
bool widen_to_f32(NamedArray& array);

}  // namespace holdfast::format
