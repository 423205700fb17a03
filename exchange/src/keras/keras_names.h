#pragma once

// Names of Keras's layers that no layer of Holdfast can have.

#include <string>
#include <vector>

#include "bytes/json.h"
#include "holdfast/format/array_set.h"

namespace holdfast::format {

// Whether a layer of Holdfast can have this name. It becomes a part of names of arrays and of paths in files.
bool is_layer_name(const std::string& name);

// Gives the layers of a Keras model names that Holdfast accepts, in its configuration and in the names of its arrays.
// `metadata` is the parsed one of `keras`, of kind "keras"; both are changed. Returns a note for each new name.
std::vector<std::string> rename_layers(ArraySet& keras, Json& metadata);

}  // namespace holdfast::format
