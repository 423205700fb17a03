#include "compute/window.h"

#include <algorithm>

namespace holdfast::compute {

Window slide(std::int64_t extent, std::int64_t size, std::int64_t stride, Padding padding) {
  if (padding == Padding::valid) return {.count = extent < size ? 0 : (extent - size) / stride + 1};
  // As many windows as TensorFlow's "SAME" has. An odd number of missing elements adds one at the end.
  const std::int64_t count = (extent + stride - 1) / stride;
  const std::int64_t missing = std::max<std::int64_t>((count - 1) * stride + size - extent, 0);
  // All padding comes first, so a window sees no element after its own.
  if (padding == Padding::causal) return {.count = count, .pad_before = size - 1};
  return {.count = count, .pad_before = missing / 2, .pad_after = missing - missing / 2};
}

}  // namespace holdfast::compute
