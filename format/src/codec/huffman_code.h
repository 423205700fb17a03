#pragma once

// The Huffman code of the literals of a zstd block, made from how often each byte occurs (RFC 8878, section
// 4.2.1). It uses whole numbers only, so the same bytes give the same code on every machine.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace holdfast::format {

// The longest code word that the format allows.
inline constexpr unsigned kMaxCodeBits = 11;

using ByteCounts = std::array<std::uint32_t, 256>;

// How often each byte occurs.
ByteCounts count_bytes(std::span<const std::byte> bytes);

// The length of each byte's code word, in bits; 0 for a byte that does not occur.
using CodeLengths = std::array<std::uint8_t, 256>;

struct HuffmanCode {
  CodeLengths bits{};
  std::array<std::uint16_t, 256> words{};
  unsigned max_bits = 0;
};

// The best code with words of at most kMaxCodeBits. At least two different bytes must occur.
HuffmanCode huffman_code(const ByteCounts& counts);

}  // namespace holdfast::format
