#pragma once

// Writes little-endian integers and digests into bytes and reads them back, on any machine.

#include <cstddef>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/base/digest.h"

namespace holdfast::format {

// Shifts write the same bytes, whatever the byte order of the machine is.
template <typename Integer>
void put(std::span<std::byte> bytes, std::size_t offset, Integer value) {
  for (std::size_t i = 0; i < sizeof value; ++i) bytes[offset + i] = static_cast<std::byte>(value >> (8 * i));
}

inline void put(std::span<std::byte> bytes, std::size_t offset, const Digest& digest) {
  std::memcpy(bytes.data() + offset, digest.bytes.data(), digest.bytes.size());
}

// The caller makes sure that the bytes are there. For bytes of unknown origin ByteReader does.
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

// The bytes alone: a reader must know how many there are.
inline void append(std::vector<std::byte>& bytes, std::string_view text) {
  const auto raw = std::as_bytes(std::span(text));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

// Reads what append() wrote, from the first byte on. The bytes may come from anybody.
class ByteReader {
 public:
  // `fail` is called when less is left than is to be read, and must throw.
  ByteReader(std::span<const std::byte> bytes, std::function<void()> fail) : rest_(bytes), fail_(std::move(fail)) {}

  std::size_t left() const { return rest_.size(); }

  template <typename Integer>
  Integer integer() {
    return take<Integer>(next(sizeof(Integer)), 0);
  }
  Digest digest() { return take_digest(next(sizeof(Digest)), 0); }
  std::string text(std::size_t count) {
    const std::span<const std::byte> bytes = next(count);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

 private:
  // Compares before it moves on, so no count from a file leads past the end.
  std::span<const std::byte> next(std::size_t count) {
    if (count > rest_.size()) fail_();
    return std::exchange(rest_, rest_.subspan(count)).first(count);
  }

  std::span<const std::byte> rest_;
  const std::function<void()> fail_;
};

}  // namespace holdfast::format
