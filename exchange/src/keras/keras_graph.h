#pragma once

// The graph of a Holdfast savepoint (holdfast.sequential), as Keras's configuration of the same model.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "keras_files/keras_json.h"

namespace holdfast::format {

// A savepoint's metadata, checked: {"kind": "savepoint", "graph": {"format": "holdfast.sequential", ...}, ...}.
bool is_savepoint(const Json& metadata);

// {"module": "keras", "class_name": "Sequential", "config": ..., "compile_config": ...}. The layers keep their names.
// Optimizer, loss and metrics are in compile_config where Keras has the same. Throws Error{unsupported} for a graph or
// a layer that is not known here.
Json keras_config_of_savepoint(const Json& metadata);

// The names of the optimizer's slots on both sides.
struct SlotName {
  std::string holdfast;
  std::string keras;
};
// In Keras's order, for the optimizer in the metadata's "configuration"; empty when it has none or is not known.
std::vector<SlotName> optimizer_slots(const Json& metadata);

// Height, width and channels in front of the layer `name`; zeros where it does not get images.
std::array<std::uint64_t, 3> image_before(const Json& metadata, const std::string& name);

}  // namespace holdfast::format
