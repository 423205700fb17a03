// Huffman's own algorithm may make words longer than the 11 bits that the format allows. Package-merge finds
// the best code within the limit. Whole numbers and stable sorts only: the same counts give the same code on
// every machine, and so the same savepoint. See docs/decisions/compression.md.

#include "codec/huffman_code.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "holdfast/base/error.h"

namespace holdfast::format {
namespace {

constexpr std::size_t kMaxSymbols = 256;

// Package-merge (Larmore and Hirschberg, 1990). Each of kMaxCodeBits rounds merges the symbols, by count, with
// the pairs ("packages") of the round before. The first 2 n - 2 entries of the last round are made of symbols
// of all rounds. A symbol's length is the number of rounds in which it is among these.
class LengthLimiter {
 public:
  // `counts` in ascending order.
  explicit LengthLimiter(std::span<const std::uint32_t> counts) : counts_(counts) {
    for (unsigned round = 0; round < kMaxCodeBits; ++round) merge(is_symbol_[round]);
  }

  // The length for each symbol, in the order of `counts`.
  std::array<std::uint8_t, kMaxSymbols> lengths() const {
    std::array<std::uint8_t, kMaxSymbols> lengths{};
    std::size_t wanted = 2 * counts_.size() - 2;
    for (unsigned round = kMaxCodeBits; round-- > 0 && wanted > 0;) {
      const auto begin = is_symbol_[round].begin();
      const auto symbols =
          static_cast<std::size_t>(std::count(begin, begin + static_cast<std::ptrdiff_t>(wanted), true));
      for (std::size_t i = 0; i < symbols; ++i) ++lengths[i];
      wanted = 2 * (wanted - symbols);
    }
    return lengths;
  }

 private:
  void merge(std::array<bool, 2 * kMaxSymbols>& is_symbol) {
    const std::size_t packages = entries_ / 2;
    std::array<std::uint64_t, 2 * kMaxSymbols> merged;
    std::size_t symbol = 0;
    std::size_t package = 0;
    for (std::size_t i = 0; i < counts_.size() + packages; ++i) {
      const std::uint64_t weight = package < packages ? weights_[2 * package] + weights_[2 * package + 1] : 0;
      is_symbol[i] = package == packages || (symbol < counts_.size() && counts_[symbol] <= weight);
      merged[i] = is_symbol[i] ? counts_[symbol++] : weight;
      if (!is_symbol[i]) ++package;
    }
    entries_ = counts_.size() + packages;
    std::copy_n(merged.begin(), entries_, weights_.begin());
  }

  std::span<const std::uint32_t> counts_;
  std::size_t entries_ = 0;  // the number of entries of the round before
  std::array<std::uint64_t, 2 * kMaxSymbols> weights_{};
  std::array<std::array<bool, 2 * kMaxSymbols>, kMaxCodeBits> is_symbol_{};
};

// Words are numbered from the longest to the shortest, and words of one length in the order of their bytes.
void assign_words(HuffmanCode& code) {
  unsigned next = 0;
  for (unsigned bits = code.max_bits; bits > 0; --bits) {
    for (std::size_t byte = 0; byte < kMaxSymbols; ++byte) {
      if (code.bits[byte] == bits) code.words[byte] = static_cast<std::uint16_t>(next++);
    }
    next /= 2;
  }
}

}  // namespace

ByteCounts count_bytes(std::span<const std::byte> bytes) {
  // Equal bytes often follow each other, and an addition has to wait for the one before it at the same
  // address. Several tables avoid that.
  constexpr std::size_t kTables = 8;
  std::array<ByteCounts, kTables> tables{};
  std::size_t i = 0;
  for (; i + kTables <= bytes.size(); i += kTables) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + i, kTables);
    for (std::size_t t = 0; t < kTables; ++t) ++tables[t][word >> 8 * t & 0xFF];
  }
  for (; i < bytes.size(); ++i) ++tables[0][std::to_integer<std::size_t>(bytes[i])];
  for (std::size_t t = 1; t < kTables; ++t) {
    for (std::size_t byte = 0; byte < kMaxSymbols; ++byte) tables[0][byte] += tables[t][byte];
  }
  return tables[0];
}

HuffmanCode huffman_code(const ByteCounts& counts) {
  std::vector<std::uint8_t> symbols;
  for (std::size_t byte = 0; byte < kMaxSymbols; ++byte) {
    if (counts[byte] > 0) symbols.push_back(static_cast<std::uint8_t>(byte));
  }
  HOLDFAST_ASSERT(symbols.size() >= 2);
  std::stable_sort(symbols.begin(), symbols.end(),
                   [&](std::uint8_t a, std::uint8_t b) { return counts[a] < counts[b]; });
  std::vector<std::uint32_t> sorted;
  for (const std::uint8_t symbol : symbols) sorted.push_back(counts[symbol]);

  HuffmanCode code;
  const auto lengths = LengthLimiter(sorted).lengths();
  for (std::size_t i = 0; i < symbols.size(); ++i) code.bits[symbols[i]] = lengths[i];
  code.max_bits = *std::max_element(code.bits.begin(), code.bits.end());
  assign_words(code);
  return code;
}

}  // namespace holdfast::format
