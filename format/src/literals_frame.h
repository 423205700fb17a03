#pragma once

// Zstd frames of literals only: what Huffman's code can gain of planes of bytes, at a multiple of the speed at which
// zstd looks for matches, which weights hardly have. Every block is a plane or a part of one, and is stored as it is,
// as one repeated byte, or in a Huffman code of its own (RFC 8878). Any zstd decoder reads them.
//
// The bytes depend on the content alone: not on the processor, nor on zstd's version, which has no part in it.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "huffman_code.h"

namespace holdfast::format {

// Not for several threads at once.
class LiteralsEncoder {
 public:
  LiteralsEncoder();

  // One frame of `content`, with content size and checksum; its planes lie one after the other. `content` has
  // between 1 byte and 4 GiB, and a whole number of planes. Valid until the next call.
  std::span<const std::byte> encode(std::span<const std::byte> content, std::size_t plane_bytes);

 private:
  std::byte* write_block(std::span<const std::byte> block, bool is_last, std::byte* out);
  std::size_t write_literals(std::span<const std::byte> block, std::byte* out);
  std::size_t write_streams(std::span<const std::byte> block, const HuffmanCode& code, std::byte* out);

  std::vector<std::byte> frame_;
  std::vector<std::byte> stream_;
  std::vector<std::uint32_t> pairs_;  // by two neighbouring bytes
};

}  // namespace holdfast::format
