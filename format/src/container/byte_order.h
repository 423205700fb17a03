#pragma once

// Writes little-endian integers and digests into bytes and reads them back, on any machine.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "holdfast/base/digest.h"

namespace holdfast::format {

template <typename Integer>
void put(std::span<std::byte> bytes, std::size_t offset, Integer value) {
  for (std::size_t i = 0; i < sizeof value; ++i) bytes[offset + i] = static_cast<std::byte>(value >> (8 * i));
}

inline void put(std::span<std::byte> bytes, std::size_t offset, const Digest& digest) {
  std::memcpy(bytes.data() + offset, digest.bytes.data(), digest.bytes.size());
}

template <typename Integer>
Integer take(std::span<const std::byte> bytes, std::size_t offset) {
  Integer value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) {
    value = static_cast<Integer>(value | static_cast<Integer>(std::to_integer<Integer>(bytes[offset + i]) << (8 * i)));
  }
  return value;
}

inline Digest take_digest(std::span<const std::byte> bytes, std::size_t offset) {
  Digest digest;
  std::memcpy(digest.bytes.data(), bytes.data() + offset, digest.bytes.size());
  return digest;
}

template <typename Integer>
void append(std::vector<std::byte>& bytes, Integer value) {
  bytes.resize(bytes.size() + sizeof value);
  put(std::span(bytes), bytes.size() - sizeof value, value);
}

inline void append(std::vector<std::byte>& bytes, const Digest& digest) {
  bytes.resize(bytes.size() + sizeof digest.bytes);
  put(std::span(bytes), bytes.size() - sizeof digest.bytes, digest);
}

}  // namespace holdfast::format
