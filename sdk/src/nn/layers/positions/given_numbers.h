#pragma once

// Buffers whose numbers are a function of their place, and stand still: a graph has no other arrays of its own. They
// are computed in double and rounded once.

#include <cstdint>
#include <functional>
#include <string>

#include "holdfast/nn/layer_builder.h"

namespace holdfast {

// A buffer whose numbers are value(row, column). Throws Error{invalid_argument} for more than 2^28 elements.
Value given_numbers(LayerBuilder& builder, const std::string& name, std::int64_t rows, std::int64_t columns,
                    const std::function<double(double row, std::int64_t column)>& value);

}  // namespace holdfast
