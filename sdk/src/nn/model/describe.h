#pragma once

// Turns the values of an application, or a list of layers, into the description of a model.

#include "nn/model/description.h"

namespace holdfast {

// The calls that lead from the inputs to the outputs, each after those that it needs (nodes_in_order()). Throws
// Error{invalid_argument}.
ModelDescription describe(const std::vector<Value>& inputs, const std::vector<Value>& outputs);

// Throws Error{invalid_argument} for a type that an input cannot have.
void check_input_type(DType dtype);

// Each layer takes the output of the one before it.
ModelDescription describe_chain(const Shape& input, const std::vector<std::shared_ptr<const Layer>>& layers);

}  // namespace holdfast
