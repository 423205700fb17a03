#pragma once

// Operations on elements, with broadcasting.

#include <variant>
#include <vector>

#include "compute/array_kernels.h"
#include "nn/graph/value_node.h"

namespace holdfast {

// A function of values and constants. Throws Error{invalid_argument} if the shapes cannot be broadcast.
using ElementArgument = std::variant<Value, float>;
Value element_function(compute::ElementFunction function, const std::vector<ElementArgument>& arguments);

// Several instructions as one operation. Its inputs are broadcast to its only output. It has no gradient and stands in
// no file, since only plans make it.
std::shared_ptr<const Operation> make_element_program(const compute::ElementProgram& program, const ValueSpec& output);

// `x` repeated to a spec, and its reverse: the sum over what was repeated, samples included.
Value broadcast_to(const Value& x, const ValueSpec& spec);
Value sum_to(const Value& x, const ValueSpec& spec);

// The spec that two operands are broadcast to.
ValueSpec broadcast_spec(const ValueSpec& a, const ValueSpec& b);

// The sum over samples, which is for gradients of what has none.
Value sum_over_samples(const Value& x);

}  // namespace holdfast
