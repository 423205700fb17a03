#pragma once

// Writes and reads the description of a Huffman code in a zstd block (RFC 8878, sections 4.2.1 and 4.1).

#include <cstddef>
#include <span>

#include "codec/huffman_code.h"

namespace holdfast::format {

inline constexpr std::size_t kMaxDescriptionBytes = 129;

// Writes the description of `code` to `out`, which has room for kMaxDescriptionBytes, and returns its size.
// Returns 0 for a code that the format cannot describe.
std::size_t describe_code(const HuffmanCode& code, std::byte* out);

// Reads a description from the beginning of `bytes`, which may come from anybody and must go on after it.
// Returns its size. Returns 0, with `lengths` undefined, for bytes that do not describe a complete code, or
// do so in a way in which describe_code() never does.
std::size_t read_description(std::span<const std::byte> bytes, CodeLengths& lengths);

}  // namespace holdfast::format
