#pragma once

// A window that slides along one axis, for host and device: which elements a window covers, and which windows cover an
// element. See window.h for where the numbers come from.

#include <cstdint>

#include "compute/arithmetic/divisor.h"
#include "compute/window.h"
#include "core/host_device.h"

namespace holdfast::compute {

// Numbers from a to b, b itself excluded.
struct IndexRange {
  std::int32_t begin;
  std::int32_t end;
};

struct SlidingAxis {
  Divisor extent;  // of the input
  Divisor size;    // of the window
  Divisor stride;
  std::int32_t pad_before;
  Divisor count;  // windows

  // The elements of the input that window `position` covers: its part inside, which is never empty.
  HOLDFAST_HOST_DEVICE IndexRange elements_of(std::int32_t position) const {
    const std::int32_t begin = position * stride - pad_before;
    const std::int32_t inside = extent - begin;  // before the sum of begin and size, which may be too large a number
    return {begin < 0 ? 0 : begin, size > inside ? std::int32_t{extent} : begin + size};
  }

  // The windows that cover an element; none where strides skip it.
  HOLDFAST_HOST_DEVICE IndexRange windows_over(std::int32_t element) const {
    const std::int32_t padded = element + pad_before;
    const std::int32_t first = padded < size ? 0 : stride.quotient(padded - size) + 1;
    const std::int32_t last = stride.quotient(padded);
    return {first, last < count ? last + 1 : std::int32_t{count}};
  }
};

inline SlidingAxis sliding_axis(std::int64_t extent, std::int64_t size, std::int64_t stride, Padding padding) {
  const Window window = slide(extent, size, stride, padding);
  // Elements of the padded axis are numbers of 31 bits, too.
  HOLDFAST_ASSERT(extent + window.pad_before + window.pad_after <= Divisor::kLargest);
  return {.extent = Divisor(extent),
          .size = Divisor(size),
          .stride = Divisor(stride),
          .pad_before = static_cast<std::int32_t>(window.pad_before),
          .count = Divisor(window.count)};
}

}  // namespace holdfast::compute
