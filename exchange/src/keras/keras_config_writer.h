#pragma once

// Converts the graph of a Holdfast savepoint to Keras's configuration of the same model.

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "keras_files/keras_json.h"

namespace holdfast::format {

// True for a savepoint's metadata: {"kind": "savepoint", "graph": {"format": "holdfast.sequential", ...}, ...}. Only
// "kind" is looked at.
bool is_savepoint(const Json& metadata);

// Returns {"module": "keras", "class_name": "Sequential", "config": ..., "compile_config": ...}, or the same of class
// "Functional" for a graph that is not a chain. The layers keep their names, except that Keras allows no '/' in them.
// compile_config holds optimizer, losses and metrics if Keras has the same. Throws Error{unsupported} for a graph or a
// layer that is unknown here.
Json keras_config_of_savepoint(const Json& metadata);

// The optimizer or loss for which that configuration has no compile_config, as words of a sentence; else empty.
std::string training_that_keras_lacks(const Json& metadata);

// The names of the savepoint's layers by those in that configuration: "encoder.dense" -> "encoder/dense".
std::map<std::string, std::string> savepoint_layer_names(const Json& metadata);

// Height, width and channels of the input of layer `name` at its first call; zeros if it does not get images.
std::array<std::uint64_t, 3> image_before(const Json& metadata, const std::string& name);

}  // namespace holdfast::format
