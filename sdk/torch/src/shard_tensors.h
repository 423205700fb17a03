#pragma once

// Rows of samples, in the memory of the host or of a device, as tensors.

#include <cstdint>
#include <span>
#include <vector>

#include "holdfast/core/row_layout.h"
#include "holdfast/torch/batch.h"

namespace holdfast::torch {

// The first `arrays` arrays of the samples: views of the rows where these are one array, else copies. Throws
// Error{unsupported} for a type that LibTorch does not have.
std::vector<NamedTensor> tensors_of(std::span<const float> rows, const RowLayout& layout, std::int64_t samples,
                                    std::size_t arrays, at::Device place = at::kCPU);

// A plain row is [shape] of the spec, which the layout of a plain data set does not know: `given` is null then.
RowLayout layout_of(const RowLayout* given, const std::vector<ArraySpec>& specs);

}  // namespace holdfast::torch
