#pragma once

// Makes zstd frames that contain literals only. They gain what a Huffman code can gain from planes of bytes,
// several times faster than zstd, which looks for matches that weights hardly have. Each block is a plane or
// a part of one. It is stored as it is, as one repeated byte, or in a Huffman code of its own (RFC 8878). Any
// zstd decoder reads such frames.
//
// The bytes depend on the content alone: not on the processor, and not on zstd's version, since zstd is not
// used.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codec/huffman_code.h"

namespace holdfast::format {

// The joined code words of every pair of bytes. With it, two bytes are coded in one step. It pays if few
// different bytes occur.
class PairTable {
 public:
  PairTable() : pairs_(65536) {}

  // `words` are indexed by byte. A byte without a word has 0, and then all its pairs do.
  void fill(const std::array<std::uint32_t, 256>& words);
  // Indexed by the first byte plus 256 times the second.
  std::span<const std::uint32_t> words() const { return pairs_; }

 private:
  std::vector<std::uint32_t> pairs_;
  std::vector<std::size_t> bytes_;  // that have words
};

// One thread at a time.
class LiteralsEncoder {
 public:
  // Returns one frame of `content`, with content size and checksum. `content` consists of whole planes of
  // `plane_bytes`, one after the other, and has 1 byte to 4 GiB. The result is valid until the next call.
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
