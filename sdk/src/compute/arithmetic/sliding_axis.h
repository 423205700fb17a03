#pragma once

// A window that slides along one axis, for host and device: which elements a window covers, and which windows cover an
// element. See window.h for where the numbers come from.

#include <cstdint>

#include "compute/window.h"
#include "core/host_device.h"

namespace holdfast::compute {

// Numbers from a to b, b itself excluded.
struct IndexRange {
  std::int64_t begin;
  std::int64_t end;
};

struct SlidingAxis {
  std::int64_t extent;  // of the input
  std::int64_t size;    // of the window
  std::int64_t stride;
  std::int64_t pad_before;
  std::int64_t count;  // windows

  // The elements of the input that window `position` covers: its part inside, which is never empty.
  HOLDFAST_HOST_DEVICE IndexRange elements_of(std::int64_t position) const {
    const std::int64_t begin = position * stride - pad_before;
    return {begin < 0 ? 0 : begin, begin + size > extent ? extent : begin + size};
  }

  // The windows that cover an element; none where strides skip it.
  HOLDFAST_HOST_DEVICE IndexRange windows_over(std::int64_t element) const {
    const std::int64_t padded = element + pad_before;
    const std::int64_t first = padded < size ? 0 : (padded - size) / stride + 1;
    const std::int64_t last = padded / stride;
    return {first, last < count ? last + 1 : count};
  }
};

inline SlidingAxis sliding_axis(std::int64_t extent, std::int64_t size, std::int64_t stride, Padding padding) {
  const Window window = slide(extent, size, stride, padding);
  return {.extent = extent, .size = size, .stride = stride, .pad_before = window.pad_before, .count = window.count};
}

}  // namespace holdfast::compute
