#pragma once

// Axes and strides of kernels that walk through arrays: the sample axis comes first, and axes that need not be told
// apart are joined, which makes rows long.

#include <optional>
#include <span>

#include "compute/array_kernels.h"
#include "holdfast/nn/value.h"

namespace holdfast {

// For element programs whose inputs are broadcast to `output`. Throws Error{invalid_argument} for too many axes.
compute::ElementShape element_shape(std::span<const std::optional<ValueSpec>> inputs, const ValueSpec& output,
                                    std::int64_t samples);
compute::StridedCopy broadcasting_copy(const ValueSpec& input, const ValueSpec& output, std::int64_t samples);

// The strides of a row-major array of `shape`.
std::vector<std::int64_t> row_major_strides(const Shape& shape);

// From 0 to rank - 1; counts negative axes from the end. Throws Error{invalid_argument}, naming `function`.
std::size_t checked_axis(std::int64_t axis, const Shape& shape, std::string_view function);

}  // namespace holdfast
