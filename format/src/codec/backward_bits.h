#pragma once

// Reads bits from the last one to the first, as zstd's coders need it (RFC 8878, section 4.1). It checks
// every step, so it is for places that read few bits.

#include <bit>
#include <cstddef>
#include <span>

namespace holdfast::format {

class BackwardBits {
 public:
  // The last byte must not be zero: its highest bit marks the end of the bits.
  explicit BackwardBits(std::span<const std::byte> bytes)
      : BackwardBits(bytes, 8 * bytes.size() - 9 +
                                static_cast<std::size_t>(std::bit_width(std::to_integer<unsigned>(bytes.back())))) {}
  // The first `left` bits of `bytes` are still to be read.
  BackwardBits(std::span<const std::byte> bytes, std::size_t left) : bytes_(bytes), left_(left) {}

  std::size_t left() const { return left_; }

  // The next `bits` bits, at most 16. Bits beyond the end are zeros.
  unsigned peek(unsigned bits) const {
    const std::size_t first = left_ > bits ? left_ - bits : 0;
    unsigned value = 0;
    for (std::size_t i = (left_ + 7) / 8; i-- > first / 8;) value = value << 8 | std::to_integer<unsigned>(bytes_[i]);
    const std::size_t there = left_ - first;
    return (value >> first % 8 & ((1U << there) - 1)) << (bits - there);
  }

  // `bits` is at most left().
  void skip(std::size_t bits) { left_ -= bits; }

  unsigned take(unsigned bits) {
    const unsigned value = peek(bits);
    skip(bits);
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t left_;
};

}  // namespace holdfast::format
