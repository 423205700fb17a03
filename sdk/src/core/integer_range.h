#pragma once

// Models compute with integers of 32 bits, and data may hold wider ones. A cast would make an id of another row of
// them.

#include <cstdint>
#include <span>

#include "holdfast/core/row_layout.h"
#include "holdfast/core/tensor.h"

namespace holdfast {

// The elements of array `array` of sample `position`. Throws Error{invalid_argument} that names all of them for an
// element that does not fit into 32 bits.
void check_integer_range(std::span<const std::int64_t> elements, const ArraySpec& spec, std::size_t array,
                         std::int64_t position);
// The same for a tensor [samples, shape of `spec`...] of any type.
void check_integer_range(const Tensor& tensor, const ArraySpec& spec, std::size_t array);

}  // namespace holdfast
