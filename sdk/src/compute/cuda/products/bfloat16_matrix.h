#pragma once

// The layout of a bfloat16 matrix in a workspace. Rows are padded with zeros so that each begins at a multiple of 16
// bytes, which tensor cores need. So any shape is fast. An array counts as one row.

#include <cstddef>
#include <cstdint>

#include "compute/cuda/runtime/array_alignment.h"
#include "core/host_device.h"

namespace holdfast::compute {

using Bfloat16 = std::uint16_t;  // the bits

struct Bfloat16Matrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;

  static constexpr std::int64_t kGroup = kWidestAccess / sizeof(Bfloat16);

  HOLDFAST_HOST_DEVICE constexpr std::int64_t row_groups() const { return (columns + kGroup - 1) / kGroup; }
  // The distance between two rows in elements.
  HOLDFAST_HOST_DEVICE constexpr std::int64_t row_stride() const { return row_groups() * kGroup; }
  constexpr std::size_t bytes() const {
    return round_to_block(static_cast<std::size_t>(rows * row_stride()) * sizeof(Bfloat16));
  }
};

}  // namespace holdfast::compute
