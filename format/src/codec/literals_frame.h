#pragma once

// Zstd frames of literals only: what Huffman's code can gain of planes of bytes, at a multiple of the speed at which
// zstd looks for matches, which weights hardly have. Every block is a plane or a part of one, and is stored as it is,
// as one repeated byte, or in a Huffman code of its own (RFC 8878). Any zstd decoder reads them.
//
// The bytes depend on the content alone: not on the processor, nor on zstd's version, which has no part in it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codec/huffman_code.h"

namespace holdfast::format {

// The code words of every two neighbouring bytes, joined: one step for two bytes, where few bytes occur.
class PairTable {
 public:
  PairTable() : pairs_(65536) {}

  // By byte; 0 for one without a word, and then for all its pairs.
  void fill(const std::array<std::uint32_t, 256>& words);
  // By the first byte plus 256 times the second.
  std::span<const std::uint32_t> words() const { return pairs_; }

 private:
  void clear();

  std::vector<std::uint32_t> pairs_;
  std::vector<std::size_t> bytes_;  // that have words
};

// Not for several threads at once.
class LiteralsEncoder {
 public:
  // One frame of `content`, with content size and checksum; its planes lie one after the other. `content` has
  // between 1 byte and 4 GiB, and a whole number of planes. Valid until the next call.
  std::span<const std::byte> encode(std::span<const std::byte> content, std::size_t plane_bytes);

 private:
  std::byte* write_block(std::span<const std::byte> block, bool is_last, std::byte* out);
  std::size_t write_literals(std::span<const std::byte> block, std::byte* out);
  std::size_t write_coded(std::span<const std::byte> block, const HuffmanCode& code, std::byte* out);
  std::size_t write_streams(std::span<const std::byte> block, const HuffmanCode& code, std::byte* out);

  std::vector<std::byte> frame_;
  std::vector<std::byte> stream_;
  PairTable pairs_;
};

}  // namespace holdfast::format
