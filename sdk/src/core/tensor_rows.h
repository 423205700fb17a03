#pragma once

// Samples of several tensors as rows (holdfast/core/row_layout.h).

#include <cstdint>
#include <span>
#include <vector>

#include "holdfast/core/row_layout.h"
#include "holdfast/core/tensor.h"

namespace holdfast {

// Writes sample `position` of tensors [samples, shape of the layout's array] to one row. Words that belong to no
// element become zero, so that equal samples have equal rows.
void read_row(const RowLayout& layout, std::span<const Tensor* const> tensors, std::int64_t position,
              std::span<float> row);

}  // namespace holdfast
