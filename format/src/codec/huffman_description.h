#pragma once

// How a zstd block describes the Huffman code of its literals (RFC 8878, sections 4.2.1 and 4.1).

#include <cstddef>
#include <span>

#include "codec/huffman_code.h"

namespace holdfast::format {

inline constexpr std::size_t kMaxDescriptionBytes = 129;

// Writes the code's description to `out`, with room for kMaxDescriptionBytes, and returns its size: 0 for a code that
// the format cannot describe.
std::size_t describe_code(const HuffmanCode& code, std::byte* out);

// The way back, from bytes of anybody that begin with a description, and go on behind it. Returns its size, or 0, with
// `lengths` undefined, for what describes no complete code, or does so as describe_code() never does.
std::size_t read_description(std::span<const std::byte> bytes, CodeLengths& lengths);

}  // namespace holdfast::format
