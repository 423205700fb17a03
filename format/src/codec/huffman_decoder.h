#pragma once

// Literals of a zstd block back from their Huffman code: four streams side by side, several bytes a step. Bytes come
// from anybody: whatever they are, nothing beside `out` is written, and what is accepted is what any zstd decoder makes
// of them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codec/huffman_code.h"

namespace holdfast::format {

// What the next bits stand for: the length of their words in the lowest byte, up to kMaxEntryBytes bytes above it, and
// their number in the highest one.
using DecodeEntry = std::uint64_t;
inline constexpr std::size_t kMaxEntryBytes = 6;

// Which bytes any kMaxCodeBits bits begin with.
class DecodeTable {
 public:
  DecodeTable();

  // Of a complete code.
  void fill(const CodeLengths& lengths);
  // By the next kMaxCodeBits bits; each of at least one byte.
  const DecodeEntry* entries() const { return level(kMaxCodeBits); }
  const CodeLengths& lengths() const { return lengths_; }

 private:
  const DecodeEntry* level(unsigned bits) const { return levels_.data() + (std::size_t{1} << bits); }
  void fill_level(unsigned bits, unsigned shortest, std::span<const std::uint8_t> by_word);

  // What any `bits` bits begin with, from 1 << bits on, for every number of bits up to kMaxCodeBits.
  std::vector<DecodeEntry> levels_;
  CodeLengths lengths_{};
};

// Decodes `streams`, four behind the sizes of the first three, to `out`. False, with `out` undefined, unless they hold
// exactly that many bytes and nothing else. `out` takes at least four bytes.
[[nodiscard]] bool decode_streams(std::span<const std::byte> streams, const DecodeTable& table,
                                  std::span<std::byte> out);

}  // namespace holdfast::format
