#pragma once

// Decodes the Huffman-coded literals of a zstd block: four streams in parallel, several bytes in each step.
// The bytes may come from anybody. Whatever they are, only `out` is written, and a result that is accepted is
// that of any zstd decoder.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codec/huffman_code.h"

namespace holdfast::format {

// What the next bits stand for: one or several bytes. The lowest byte of an entry is the length of their words
// in bits. Above it are the bytes, at most kMaxEntryBytes. The highest byte is their number.
using DecodeEntry = std::uint64_t;
inline constexpr std::size_t kMaxEntryBytes = 6;

// The entry for each value of the next kMaxCodeBits bits.
class DecodeTable {
 public:
  DecodeTable();

  // Fills the table for a complete code: one in which every sequence of bits begins with a word.
  void fill(const CodeLengths& lengths);
  // Indexed by the next kMaxCodeBits bits. Each entry has at least one byte.
  const DecodeEntry* entries() const { return level(kMaxCodeBits); }
  const CodeLengths& lengths() const { return lengths_; }

 private:
  const DecodeEntry* level(unsigned bits) const { return levels_.data() + (std::size_t{1} << bits); }
  void fill_level(unsigned bits, unsigned shortest, std::span<const std::uint8_t> by_word);

  // A table for each number of bits from 0 to kMaxCodeBits; the one for `bits` bits begins at 1 << bits.
  std::vector<DecodeEntry> levels_;
  CodeLengths lengths_{};
};

// Decodes `streams`, the sizes of the first three streams followed by four streams, to `out`. Returns false,
// with `out` undefined, unless they contain exactly that many bytes and nothing else. `out` has at least four
// bytes.
[[nodiscard]] bool decode_streams(std::span<const std::byte> streams, const DecodeTable& table,
                                  std::span<std::byte> out);

}  // namespace holdfast::format
