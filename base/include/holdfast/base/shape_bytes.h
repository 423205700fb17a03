#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace holdfast {

inline constexpr std::size_t kMaxAxes = 32;

// The bytes that `shape` takes. False when 64 bits cannot hold the number.
[[nodiscard]] inline bool multiply_shape(std::span<const std::uint64_t> shape, std::size_t element_bytes,
                                         std::uint64_t& bytes) {
  bytes = element_bytes;
  if (std::find(shape.begin(), shape.end(), 0U) != shape.end()) bytes = 0;
  return std::none_of(shape.begin(), shape.end(),
                      [&](std::uint64_t extent) { return __builtin_mul_overflow(bytes, extent, &bytes); });
}

}  // namespace holdfast
