#pragma once

// Reads and writes bytes of a file in memory, by their offset.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace holdfast::format {

// False unless all of them exist.
inline bool read_bytes(std::span<const std::byte> bytes, std::uint64_t offset, std::span<std::byte> out) {
  if (offset > bytes.size() || out.size() > bytes.size() - offset) return false;
  std::copy_n(bytes.data() + offset, out.size(), out.begin());
  return true;
}

// The vector grows when something is written after its end.
inline void write_bytes(std::vector<std::byte>& bytes, std::uint64_t offset, std::span<const std::byte> in) {
  if (bytes.size() < offset + in.size()) bytes.resize(offset + in.size());
  std::copy(in.begin(), in.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset));
}

}  // namespace holdfast::format
