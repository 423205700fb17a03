#pragma once

// What readers of several formats do to the bytes of elements. Everything is inline, since the program that parses
// HDF5 files compiles these headers without the sources of this room.

#include <algorithm>
#include <cstddef>
#include <span>

namespace holdfast::format {

// True when every byte is 0 or 1. C++ gives no meaning to a bool of another value.
inline bool holds_booleans(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte <= std::byte{1}; });
}

// Reverses the bytes of each element in place. `bytes` must be whole elements.
inline void swap_bytes(std::span<std::byte> bytes, std::size_t element_bytes) {
  for (std::size_t i = 0; i < bytes.size(); i += element_bytes) {
    const auto element = bytes.subspan(i, element_bytes);
    std::reverse(element.begin(), element.end());
  }
}

}  // namespace holdfast::format
