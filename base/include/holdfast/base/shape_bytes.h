#pragma once

// The size in bytes of an array, computed from a shape that may come from a file of unknown origin.
//
//   std::uint64_t bytes = 0;
//   if (!multiply_shape(shape, 4, bytes)) throw Error(ErrorCode::invalid_file, "...");

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace holdfast {

// The most axes that an array of a file may have; HDF5 has the same limit.
inline constexpr std::size_t kMaxAxes = 32;

// Sets `bytes` to the product of `element_bytes` and all extents. A shape without axes is a scalar. A
// shape with an extent of 0 takes no bytes, however large its other extents are. Returns false, with
// `bytes` undefined, when 64 bits cannot hold the product.
[[nodiscard]] inline bool multiply_shape(std::span<const std::uint64_t> shape, std::size_t element_bytes,
                                         std::uint64_t& bytes) {
  bytes = element_bytes;
  if (std::find(shape.begin(), shape.end(), 0U) != shape.end()) bytes = 0;
  return std::none_of(shape.begin(), shape.end(),
                      [&](std::uint64_t extent) { return __builtin_mul_overflow(bytes, extent, &bytes); });
}

}  // namespace holdfast
