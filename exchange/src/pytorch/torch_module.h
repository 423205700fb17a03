#pragma once

// Savepoints of modules of LibTorch (Holdfast::torch), whose arrays have PyTorch's shapes already.

#include <nlohmann/json.hpp>
#include <string>

#include "holdfast/format/array_set.h"
#include "pytorch/pytorch_walk.h"

namespace holdfast::format {

// Whether the graph of this metadata is that of a module. False for what is not JSON.
bool describes_torch_module(const std::string& metadata);

// Visits each array of the module. Throws Error{invalid_argument} for arrays that do not fit the graph.
void walk_torch_module(const ArraySet& savepoint, Exchange& exchange);

}  // namespace holdfast::format
