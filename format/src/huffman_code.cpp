#include "huffman_code.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "holdfast/base/error.h"

namespace holdfast::format {
namespace {

constexpr std::size_t kMaxSymbols = 256;

// Package-merge (Larmore and Hirschberg, 1990). In each of kMaxCodeBits rounds, the symbols are merged by count with
// the pairs ("packages") of the round before. A symbol's length is the number of rounds in which it is among what the
// last round's first 2 n - 2 entries are made of.
class LengthLimiter {
 public:
  // `counts` in ascending order.
  explicit LengthLimiter(std::span<const std::uint32_t> counts) : counts_(counts) {
    for (unsigned round = 0; round < kMaxCodeBits; ++round) merge(is_symbol_[round]);
  }

  // Of the symbols in their order.
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
  std::size_t entries_ = 0;  // of the round before
  std::array<std::uint64_t, 2 * kMaxSymbols> weights_{};
  std::array<std::array<bool, 2 * kMaxSymbols>, kMaxCodeBits> is_symbol_{};
};

// The longest words come first, and words of one length in the order of their bytes.
void assign_words(HuffmanCode& code) {
  unsigned next = 0;
  for (unsigned bits = code.max_bits; bits > 0; --bits) {
    for (std::size_t byte = 0; byte < kMaxSymbols; ++byte) {
      if (code.bits[byte] == bits) code.words[byte] = static_cast<std::uint16_t>(next++);
    }
    next /= 2;
  }
}

// The format's weights: 0 for a byte that does not occur, and more the shorter its word is. The last byte's follows
// from the others, so that it is left out.
std::vector<std::uint8_t> weights_of(const HuffmanCode& code) {
  std::vector<std::uint8_t> weights;
  for (const std::uint8_t bits : code.bits) {
    weights.push_back(bits == 0 ? std::uint8_t{0} : static_cast<std::uint8_t>(code.max_bits + 1 - bits));
  }
  while (weights.back() == 0) weights.pop_back();
  weights.pop_back();
  return weights;
}

// Bits from the lowest of the first byte on.
class BitWriter {
 public:
  void put(unsigned value, unsigned bits) {
    for (unsigned i = 0; i < bits; ++i, ++size_) {
      if (size_ % 8 == 0) bytes_.push_back(0);
      bytes_.back() = static_cast<std::uint8_t>(bytes_.back() | (value >> i & 1U) << size_ % 8);
    }
  }

  const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
  std::size_t size_ = 0;
};

constexpr unsigned kStatesLog = 6;  // the most that the format allows for weights
constexpr unsigned kStates = 1U << kStatesLog;
constexpr std::size_t kWeights = kMaxCodeBits + 1;

// How many of the coder's states each weight gets: in proportion, and one at least for what occurs.
std::array<unsigned, kWeights> share_states(std::span<const std::uint8_t> weights) {
  std::array<unsigned, kWeights> counts{};
  for (const std::uint8_t weight : weights) ++counts[weight];
  std::array<unsigned, kWeights> shares{};
  for (std::size_t w = 0; w < kWeights; ++w) {
    if (counts[w] > 0) shares[w] = std::max(1U, static_cast<unsigned>(counts[w] * kStates / weights.size()));
  }
  // Rounding is made up for where it matters least.
  unsigned sum = 0;
  for (const unsigned share : shares) sum += share;
  for (; sum < kStates; ++sum) ++*std::max_element(shares.begin(), shares.end());
  for (; sum > kStates; --sum) --*std::max_element(shares.begin(), shares.end());
  return shares;
}

// Section 4.1.1: each share plus one, in as many bits as what is left to share needs; small values take a bit less.
void write_shares(std::span<const unsigned> shares, BitWriter& writer) {
  writer.put(kStatesLog - 5, 4);
  unsigned left = kStates;
  for (std::size_t w = 0; left > 0; ++w) {
    const unsigned bits = static_cast<unsigned>(std::bit_width(left + 1));
    const unsigned short_values = (1U << bits) - 1 - (left + 1);
    const unsigned value = shares[w] + 1;
    const bool is_upper = value >= 1U << (bits - 1);
    writer.put(is_upper ? value + short_values : value, value < short_values ? bits - 1 : bits);
    left -= shares[w];
    if (shares[w] > 0) continue;
    // A zero is followed by the number of further zeros, in digits of two bits, of which 3 means "and more".
    unsigned zeros = 0;
    while (shares[w + 1 + zeros] == 0) ++zeros;
    w += zeros;
    for (; zeros >= 3; zeros -= 3) writer.put(3, 2);
    writer.put(zeros, 2);
  }
}

// A finite-state coder (section 4.1). Coding goes backwards: from the state that stands for the next symbol to one that
// stands for this symbol, and what the decoder needs for the way back is written.
class StateCoder {
 public:
  explicit StateCoder(std::span<const unsigned> shares) : states_(shares.size()) {
    std::array<std::size_t, kStates> weight_at{};
    std::size_t place = 0;
    for (std::size_t w = 0; w < shares.size(); ++w) {
      for (unsigned i = 0; i < shares[w]; ++i) {
        weight_at[place] = w;
        place = (place + kStates / 2 + kStates / 8 + 3) % kStates;
      }
    }
    for (unsigned state = 0; state < kStates; ++state) states_[weight_at[state]].push_back(state);
  }

  // The first state of a weight reads at least one bit when it is left; at the end of the bits that stops the decoder.
  unsigned first(std::uint8_t weight) const { return states_[weight].front(); }

  unsigned go(unsigned next_state, std::uint8_t weight, BitWriter& writer) const {
    const std::vector<unsigned>& states = states_[weight];
    const unsigned next = kStates + next_state;
    unsigned bits = 0;
    while (next >> bits >= 2 * states.size()) ++bits;
    writer.put(next & ((1U << bits) - 1), bits);
    return states[(next >> bits) - states.size()];
  }

 private:
  std::vector<std::vector<unsigned>> states_;  // of each weight, ascending
};

// Empty where this is no way to write them: a coder needs two different weights.
std::vector<std::uint8_t> code_weights(std::span<const std::uint8_t> weights) {
  if (std::count(weights.begin(), weights.end(), weights.front()) == std::ssize(weights)) return {};
  const auto shares = share_states(weights);
  BitWriter table;
  write_shares(shares, table);
  // Two states take turns.
  const StateCoder coder(shares);
  BitWriter writer;
  std::array<unsigned, 2> state{};
  for (std::size_t i = weights.size(); i-- > 0;) {
    const bool is_last = i + 2 >= weights.size();
    state[i % 2] = is_last ? coder.first(weights[i]) : coder.go(state[i % 2], weights[i], writer);
  }
  writer.put(state[1], kStatesLog);
  writer.put(state[0], kStatesLog);
  writer.put(1, 1);

  std::vector<std::uint8_t> bytes = table.bytes();
  bytes.insert(bytes.end(), writer.bytes().begin(), writer.bytes().end());
  return bytes;
}

std::vector<std::uint8_t> list_weights(std::span<const std::uint8_t> weights) {
  std::vector<std::uint8_t> bytes((weights.size() + 1) / 2);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    bytes[i / 2] = static_cast<std::uint8_t>(bytes[i / 2] | weights[i] << (i % 2 == 0 ? 4 : 0));
  }
  return bytes;
}

}  // namespace

ByteCounts count_bytes(std::span<const std::byte> bytes) {
  // Equal bytes often follow each other, and an addition would wait for the one before it in the same place.
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

std::size_t describe_code(const HuffmanCode& code, std::byte* out) {
  const std::vector<std::uint8_t> weights = weights_of(code);
  const std::vector<std::uint8_t> coded = code_weights(weights);
  const std::vector<std::uint8_t> listed = list_weights(weights);
  const bool can_list = weights.size() <= 128;
  const bool can_code = !coded.empty() && coded.size() < 128;
  if (!can_list && !can_code) return 0;
  const bool is_coded = can_code && (!can_list || coded.size() < listed.size());
  const std::vector<std::uint8_t>& best = is_coded ? coded : listed;
  out[0] = static_cast<std::byte>(is_coded ? best.size() : 127 + weights.size());
  std::memcpy(out + 1, best.data(), best.size());
  return 1 + best.size();
}

}  // namespace holdfast::format
