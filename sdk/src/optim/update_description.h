#pragma once

// Turns a description of an update into an element program.

#include <string>
#include <vector>

#include "compute/array_kernels.h"
#include "holdfast/nn/value.h"

namespace holdfast {

// `arguments` are the inputs of the program, then `numbers` are its first constants, which a step fills in. `results`
// are its outputs. Throws Error{invalid_argument}, which begins with `optimizer`, for a function that is not one of
// elements, for a value that is not made of the arguments, and for more than a program holds.
struct UpdateDescription {
  std::string optimizer;
  std::vector<Value> arguments;
  std::vector<Value> numbers;
  std::vector<Value> results;
};
compute::ElementProgram compile_update(const UpdateDescription& description);

// A new value for an argument or a number.
Value update_argument(const std::string& name);

}  // namespace holdfast
