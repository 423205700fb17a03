#pragma once

// A window that slides along one axis, for host and device: which elements a window covers, and which windows cover an
// element. window.h computes the numbers.

#include <cstdint>

#include "compute/arithmetic/divisor.h"
#include "compute/window.h"
#include "core/host_device.h"

namespace holdfast::compute {

// The numbers from begin to end, without end itself.
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
    const std::int32_t inside = extent - begin;  // computed this way because begin + size may overflow
    return {begin < 0 ? 0 : begin, size > inside ? std::int32_t{extent} : begin + size};
  }

  // The windows that cover an element; empty if strides skip it.
  HOLDFAST_HOST_DEVICE IndexRange windows_over(std::int32_t element) const {
    const std::int32_t padded = element + pad_before;
    const std::int32_t first = padded < size ? 0 : stride.quotient(padded - size) + 1;
    const std::int32_t last = stride.quotient(padded);
    return {first, last < count ? last + 1 : std::int32_t{count}};
  }
};

inline SlidingAxis sliding_axis(std::int64_t extent, std::int64_t size, std::int64_t stride, Padding padding) {
  const Window window = slide(extent, size, stride, padding);
  // Positions on the padded axis also fit into 31 bits.
  HOLDFAST_ASSERT(extent + window.pad_before + window.pad_after <= Divisor::kLargest);
  return {.extent = Divisor(extent),
          .size = Divisor(size),
          .stride = Divisor(stride),
          .pad_before = static_cast<std::int32_t>(window.pad_before),
          .count = Divisor(window.count)};
}

}  // namespace holdfast::compute
