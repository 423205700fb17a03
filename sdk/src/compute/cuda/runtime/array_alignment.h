#pragma once

// Kernels move several floats at once where addresses allow it, and which kernel runs decides about bits. So it may
// depend on shapes only, never on where an array happens to lie: an array is taken to be aligned as far as all its rows
// are, and any part of it that begins with a row then is, too.

#include <cstddef>
#include <cstdint>

namespace holdfast::compute {

constexpr std::size_t kWidestAccess = 16;  // bytes

// In bytes: of an array with rows of so many floats, the first of which lies as the memory space allocates it.
constexpr std::size_t alignment_of_rows(std::int64_t row_floats) {
  std::size_t alignment = kWidestAccess;
  while (static_cast<std::size_t>(row_floats) * sizeof(float) % alignment != 0) alignment /= 2;
  return alignment;
}

inline bool is_aligned(const void* address, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(address) % alignment == 0;
}

// Where the next block of a workspace may begin: as cudaMalloc() aligns.
constexpr std::size_t round_to_block(std::size_t bytes) {
  constexpr std::size_t kBlock = 256;
  return (bytes + kBlock - 1) / kBlock * kBlock;
}

}  // namespace holdfast::compute
