#pragma once

// The Huffman code of a zstd block's literals: from how often each byte occurs to the code words (RFC 8878, section
// 4.2.1). Whole numbers only, so that the same bytes give the same code on every machine.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace holdfast::format {

// The longest code word that the format allows.
inline constexpr unsigned kMaxCodeBits = 11;

using ByteCounts = std::array<std::uint32_t, 256>;

ByteCounts count_bytes(std::span<const std::byte> bytes);

// Of each byte's code word, in bits; 0 for a byte that does not occur.
using CodeLengths = std::array<std::uint8_t, 256>;

struct HuffmanCode {
  CodeLengths bits{};
  std::array<std::uint16_t, 256> words{};
  unsigned max_bits = 0;
};

// The best code with words of up to kMaxCodeBits, for at least two different bytes.
HuffmanCode huffman_code(const ByteCounts& counts);

}  // namespace holdfast::format
