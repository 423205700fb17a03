// The description of a code in a zstd block: the weights of its bytes, listed or coded by finite states
// (RFC 8878, sections 4.1 and 4.2.1). It is written and read a few times per chunk, so it is written for
// clarity. The reader takes bytes of unknown origin. See docs/decisions/compression.md.

#include "codec/huffman_description.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "codec/backward_bits.h"

namespace holdfast::format {
namespace {

constexpr std::size_t kMaxWeights = 255;

// The weights of the format: 0 for a byte that does not occur, and larger for shorter words. The last weight
// follows from the others, so it is left out.
std::vector<std::uint8_t> weights_of(const HuffmanCode& code) {
  std::vector<std::uint8_t> weights;
  for (const std::uint8_t bits : code.bits) {
    weights.push_back(bits == 0 ? std::uint8_t{0} : static_cast<std::uint8_t>(code.max_bits + 1 - bits));
  }
  while (weights.back() == 0) weights.pop_back();
  weights.pop_back();
  return weights;
}

// Writes bits, beginning with the lowest bit of the first byte.
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
constexpr std::size_t kWeightCount = kMaxCodeBits + 1;

// Which weight each of the coder's states stands for (section 4.1.1).
std::array<std::uint8_t, kStates> spread(std::span<const unsigned> shares) {
  std::array<std::uint8_t, kStates> weight_at{};
  std::size_t place = 0;
  for (std::size_t w = 0; w < shares.size(); ++w) {
    for (unsigned i = 0; i < shares[w]; ++i) {
      weight_at[place] = static_cast<std::uint8_t>(w);
      // The step of the format. It is odd, so it meets each of the 64 states once.
      place = (place + kStates / 2 + kStates / 8 + 3) % kStates;
    }
  }
  return weight_at;
}

// How many of the coder's states each weight gets: in proportion to its count, and at least one if it occurs.
std::array<unsigned, kWeightCount> share_states(std::span<const std::uint8_t> weights) {
  std::array<unsigned, kWeightCount> counts{};
  for (const std::uint8_t weight : weights) ++counts[weight];
  std::array<unsigned, kWeightCount> shares{};
  for (std::size_t w = 0; w < kWeightCount; ++w) {
    if (counts[w] > 0) shares[w] = std::max(1U, static_cast<unsigned>(counts[w] * kStates / weights.size()));
  }
  // Rounding errors are corrected at the largest share, where they matter least.
  unsigned sum = 0;
  for (const unsigned share : shares) sum += share;
  for (; sum < kStates; ++sum) ++*std::max_element(shares.begin(), shares.end());
  for (; sum > kStates; --sum) --*std::max_element(shares.begin(), shares.end());
  return shares;
}

// Section 4.1.1: each share plus one, in as many bits as the states that are left need. Small values take one
// bit less.
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
    // After a zero comes the number of further zeros, in digits of two bits, where 3 means that more follow.
    unsigned zeros = 0;
    while (shares[w + 1 + zeros] == 0) ++zeros;
    w += zeros;
    for (; zeros >= 3; zeros -= 3) writer.put(3, 2);
    writer.put(zeros, 2);
  }
}

// A finite-state coder (section 4.1). It codes backwards: it goes from the state of the next symbol to a state
// of this symbol, and writes the bits that the decoder needs to come back.
class StateCoder {
 public:
  explicit StateCoder(std::span<const unsigned> shares) : states_(shares.size()) {
    const auto weight_at = spread(shares);
    for (unsigned state = 0; state < kStates; ++state) states_[weight_at[state]].push_back(state);
  }

  // Leaving the first state of a weight takes at least one bit. At the end of the bits this stops the decoder.
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

// Returns no bytes if the weights cannot be coded: a coder needs two different weights.
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

// Reads what BitWriter wrote.
class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  // Bits beyond the end are zeros.
  unsigned take(unsigned bits) {
    unsigned value = 0;
    for (unsigned i = 0; i < bits; ++i, ++taken_) {
      if (taken_ / 8 >= bytes_.size()) continue;
      value |= (std::to_integer<unsigned>(bytes_[taken_ / 8]) >> taken_ % 8 & 1U) << i;
    }
    return value;
  }

  std::size_t taken_bytes() const { return (taken_ + 7) / 8; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t taken_ = 0;  // bits
};

// What write_shares() wrote; false for anything that it does not write.
bool read_shares(BitReader& reader, std::span<unsigned, kWeightCount> shares) {
  if (reader.take(4) != kStatesLog - 5) return false;
  unsigned left = kStates;
  for (std::size_t w = 0; left > 0; ++w) {
    if (w >= kWeightCount) return false;
    const unsigned bits = static_cast<unsigned>(std::bit_width(left + 1));
    const unsigned short_values = (1U << bits) - 1 - (left + 1);
    unsigned value = reader.take(bits - 1);
    if (value >= short_values) {
      value |= reader.take(1) << (bits - 1);
      if (value >= 1U << (bits - 1)) value -= short_values;
    }
    if (value == 0 || value - 1 > left) return false;
    shares[w] = value - 1;
    left -= shares[w];
    if (shares[w] > 0) continue;
    for (unsigned zeros = 3; zeros == 3 && w < kWeightCount; w += zeros) zeros = reader.take(2);
  }
  return true;
}

class StateDecoder {
 public:
  explicit StateDecoder(std::span<const unsigned, kWeightCount> shares) {
    const auto weight_at = spread(shares);
    std::array<unsigned, kWeightCount> next{};
    std::copy(shares.begin(), shares.end(), next.begin());
    for (unsigned state = 0; state < kStates; ++state) {
      const unsigned place = next[weight_at[state]]++;
      const unsigned bits = kStatesLog + 1 - static_cast<unsigned>(std::bit_width(place));
      steps_[state] = {weight_at[state], bits, (place << bits) - kStates};
    }
  }

  // Returns how many weights there are, or 0 for more than `weights` takes.
  std::size_t decode(BackwardBits bits, std::span<std::uint8_t, kMaxWeights> weights) const {
    if (bits.left() < 2 * kStatesLog) return 0;
    std::array<unsigned, 2> state{};
    state[0] = bits.take(kStatesLog);
    state[1] = bits.take(kStatesLog);
    for (std::size_t i = 0; i + 1 < weights.size(); ++i) {
      const Step& step = steps_[state[i % 2]];
      weights[i] = step.weight;
      // The weights end where too few bits are left. The other state still stands for a weight.
      if (step.bits > bits.left()) {
        weights[i + 1] = steps_[state[(i + 1) % 2]].weight;
        return i + 2;
      }
      state[i % 2] = step.base + bits.take(step.bits);
    }
    return 0;
  }

 private:
  struct Step {
    std::uint8_t weight;
    unsigned bits;  // to read for the next state
    unsigned base;
  };
  std::array<Step, kStates> steps_;
};

// Both functions return how many weights there are, or 0 if `bytes` do not contain any.
std::size_t decode_weights(std::span<const std::byte> bytes, std::span<std::uint8_t, kMaxWeights> weights) {
  BitReader reader(bytes);
  std::array<unsigned, kWeightCount> shares{};
  if (!read_shares(reader, shares) || reader.taken_bytes() >= bytes.size()) return 0;
  const std::span<const std::byte> coded = bytes.subspan(reader.taken_bytes());
  return coded.back() == std::byte{0} ? 0 : StateDecoder(shares).decode(BackwardBits(coded), weights);
}

std::size_t unlist_weights(std::span<const std::byte> bytes, std::size_t count,
                           std::span<std::uint8_t, kMaxWeights> weights) {
  for (std::size_t i = 0; i < count; ++i) {
    weights[i] = std::to_integer<std::uint8_t>(bytes[i / 2] >> (i % 2 == 0 ? 4 : 0) & std::byte{0xF});
  }
  return count;
}

// Returns false unless the weights are those of a complete code.
bool lengths_of(std::span<const std::uint8_t> weights, CodeLengths& lengths) {
  unsigned taken = 0;  // how many words of max_bits begin with the word of a byte
  for (const std::uint8_t weight : weights) {
    if (weight > kMaxCodeBits) return false;
    taken += 1U << weight >> 1;
  }
  const auto max_bits = static_cast<unsigned>(std::bit_width(taken));
  const unsigned rest = (1U << max_bits) - taken;
  if (taken == 0 || max_bits > kMaxCodeBits || !std::has_single_bit(rest)) return false;
  lengths.fill(0);
  unsigned longest = 0;
  const auto set = [&](std::size_t byte, unsigned weight) {
    lengths[byte] = static_cast<std::uint8_t>(weight == 0 ? 0 : max_bits + 1 - weight);
    if (weight == 1) ++longest;
  };
  for (std::size_t i = 0; i < weights.size(); ++i) set(i, weights[i]);
  set(weights.size(), static_cast<unsigned>(std::bit_width(rest)));
  return longest >= 2;
}

}  // namespace

std::size_t describe_code(const HuffmanCode& code, std::byte* out) {
  const std::vector<std::uint8_t> weights = weights_of(code);
  const std::vector<std::uint8_t> coded = code_weights(weights);
  const std::vector<std::uint8_t> listed = list_weights(weights);
  // A list takes half a byte for each weight. Coded weights are often shorter.
  const bool can_list = weights.size() <= 128;
  const bool can_code = !coded.empty() && coded.size() < 128;
  if (!can_list && !can_code) return 0;
  const bool is_coded = can_code && (!can_list || coded.size() < listed.size());
  const std::vector<std::uint8_t>& best = is_coded ? coded : listed;
  out[0] = static_cast<std::byte>(is_coded ? best.size() : 127 + weights.size());
  std::memcpy(out + 1, best.data(), best.size());
  return 1 + best.size();
}

std::size_t read_description(std::span<const std::byte> bytes, CodeLengths& lengths) {
  if (bytes.empty()) return 0;
  const auto head = std::to_integer<std::size_t>(bytes.front());
  const bool is_coded = head < 128;
  const std::size_t count = is_coded ? 0 : head - 127;
  const std::size_t size = is_coded ? head : (count + 1) / 2;
  if (size >= bytes.size()) return 0;
  const std::span<const std::byte> description = bytes.subspan(1, size);
  std::array<std::uint8_t, kMaxWeights> weights{};
  const std::size_t read =
      is_coded ? decode_weights(description, weights) : unlist_weights(description, count, weights);
  return lengths_of(std::span(weights).first(read), lengths) ? 1 + size : 0;
}

}  // namespace holdfast::format
