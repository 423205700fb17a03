#pragma once

// The Huffman code of a zstd block's literals: from how often each byte occurs to the code words, and how a block
// describes its code (RFC 8878, sections 4.2.1 and 4.1). Whole numbers only, so that the same bytes give the same code
// on every machine.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace holdfast::format {

// The longest code word that the format allows.
inline constexpr unsigned kMaxCodeBits = 11;
inline constexpr std::size_t kMaxDescriptionBytes = 129;

using ByteCounts = std::array<std::uint32_t, 256>;

ByteCounts count_bytes(std::span<const std::byte> bytes);

struct HuffmanCode {
  std::array<std::uint8_t, 256> bits{};    // of each byte's code word; 0 for a byte that does not occur
  std::array<std::uint16_t, 256> words{};  //
  unsigned max_bits = 0;
};

// The best code with words of up to kMaxCodeBits, for at least two different bytes.
HuffmanCode huffman_code(const ByteCounts& counts);

// Writes the code's description to `out`, with room for kMaxDescriptionBytes, and returns its size: 0 for a code that
// the format cannot describe.
std::size_t describe_code(const HuffmanCode& code, std::byte* out);

}  // namespace holdfast::format
