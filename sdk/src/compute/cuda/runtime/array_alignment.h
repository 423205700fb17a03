#pragma once

// Kernels move several floats at once if addresses allow it, and the choice of a kernel may change bits. So the choice
// must depend on shapes alone, never on the address of an array. An array counts as aligned only as far as all of its
// rows are; then any part of it that begins with a row has the same alignment.

#include <cstddef>
#include <cstdint>

namespace holdfast::compute {

constexpr std::size_t kWidestAccess = 16;  // bytes

// The alignment in bytes that all rows of an array have, if the memory space allocated it and a row has `row_floats`.
constexpr std::size_t alignment_of_rows(std::int64_t row_floats) {
  std::size_t alignment = kWidestAccess;
  while (static_cast<std::size_t>(row_floats) * sizeof(float) % alignment != 0) alignment /= 2;
  return alignment;
}

inline bool is_aligned(const void* address, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(address) % alignment == 0;
}

// Rounds up to where the next block of a workspace may begin, with the alignment of cudaMalloc().
constexpr std::size_t round_to_block(std::size_t bytes) {
  constexpr std::size_t kBlock = 256;
  return (bytes + kBlock - 1) / kBlock * kBlock;
}

}  // namespace holdfast::compute
