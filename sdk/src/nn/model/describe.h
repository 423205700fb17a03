#pragma once

// Turns the values of an application, or a list of layers, into the description of a model.

#include "holdfast/nn/input.h"
#include "nn/model/description.h"

namespace holdfast {

// The calls that lead from the inputs to the outputs, each after those that it needs (nodes_in_order()). Throws
// Error{invalid_argument}.
ModelDescription describe(const std::vector<Value>& inputs, const std::vector<Value>& outputs);

// Gives the outputs these names, one for each. Throws Error{invalid_argument} for what is not a name, and for a name
// that two outputs have.
void name_outputs(ModelDescription& model, std::vector<std::string> names);

// Each layer takes the output of the one before it.
ModelDescription describe_chain(const Input& input, const std::vector<std::shared_ptr<const Layer>>& layers);

}  // namespace holdfast
