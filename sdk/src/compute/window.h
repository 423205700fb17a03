#pragma once

// The positions of a window that slides along one axis. Shapes and arithmetic both use this one rule of padding.

#include <cstdint>

#include "holdfast/compute/padding.h"

namespace holdfast::compute {

struct Window {
  std::int64_t count = 0;       // positions: the extent of the output
  std::int64_t pad_before = 0;  // elements that the first window reaches beyond the input
  std::int64_t pad_after = 0;   // elements that the last window reaches beyond the input
};

// The elements from the first to the last one of a window whose `size` elements are `dilation` apart.
inline std::int64_t dilated_size(std::int64_t size, std::int64_t dilation) {
  return (size - 1) * dilation + 1;
}

// `extent`, `size` and `stride` are at least 1 and below 2^31. The count is below 1 when no window fits.
Window slide(std::int64_t extent, std::int64_t size, std::int64_t stride, Padding padding);

}  // namespace holdfast::compute
