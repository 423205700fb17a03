// Decodes several bytes with each look-up, from a table of 11 bits, and four streams side by side. A fast loop
// runs as long as no stream can reach an end; a slow one that checks every step does the rest. Streams may come
// from anybody. See docs/decisions/compression.md.

#include "codec/huffman_decoder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "codec/always_inline.h"
#include "codec/backward_bits.h"
#include "codec/literals_blocks.h"

namespace holdfast::format {
namespace {

constexpr unsigned kBytesAt = 8;
constexpr unsigned kCountAt = 56;
// All bytes of an entry except the last, for which there is no room after another byte.
constexpr DecodeEntry kLeadingBytes = (DecodeEntry{1} << (kCountAt - 8)) - (DecodeEntry{1} << kBytesAt);
constexpr DecodeEntry kLengthAndCount = DecodeEntry{0xFF} | DecodeEntry{0xFF} << kCountAt;

constexpr std::size_t kWordBytes = sizeof(std::uint64_t);
// A load has 64 bits. One is the mark (Stream::bits), and up to seven are used up already.
constexpr unsigned kStepsOfALoad = 5;
static_assert(kStepsOfALoad * kMaxCodeBits <= 64 - 1 - 7);
constexpr std::size_t kMaxLoadedBytes = kStepsOfALoad * kMaxEntryBytes;
// A whole entry is stored, even if only some of its bytes count.
constexpr std::size_t kStoredBeyond = sizeof(DecodeEntry) - kMaxEntryBytes;

std::uint64_t load_word(const std::byte* bytes) {
  std::uint64_t word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

// One stream that is being decoded.
struct Stream {
  std::span<const std::byte> bytes;
  const std::byte* in;  // where `bits` were loaded from
  // From the highest bit on: the bits that are still to be read, a 1 that marks their end, and zeros.
  std::uint64_t bits;
  std::byte* out;
  std::byte* end;
};

// Returns false for bytes that are not a stream.
bool begin_stream(std::span<const std::byte> bytes, std::span<std::byte> out, Stream& stream) {
  if (bytes.empty() || bytes.back() == std::byte{0}) return false;
  stream = {bytes, bytes.data(), 0, out.data(), out.data() + out.size()};
  // finish_stream() reads such a short stream bit by bit.
  if (bytes.size() < kWordBytes) return true;
  stream.in = bytes.data() + bytes.size() - kWordBytes;
  const std::uint64_t word = load_word(stream.in);
  stream.bits = (word | 1) << std::countl_zero(word) << 1;
  return true;
}

// How many loads the stream allows before one could reach beyond an end of its input or output.
std::size_t safe_rounds(const Stream& stream) {
  if (stream.bytes.size() < kWordBytes) return 0;
  const auto room = static_cast<std::size_t>(stream.end - stream.out);
  const auto rest = static_cast<std::size_t>(stream.in - stream.bytes.data());
  return std::min(rest / (kWordBytes - 1), room < kStoredBeyond ? 0 : (room - kStoredBeyond) / kMaxLoadedBytes);
}

HOLDFAST_INLINE void decode_step(const DecodeEntry* entries, std::uint64_t& bits, std::byte*& out) {
  const DecodeEntry entry = entries[bits >> (64 - kMaxCodeBits)];
  const std::uint64_t bytes = std::rotr(entry, kBytesAt);
  std::memcpy(out, &bytes, sizeof(bytes));
  // The mask costs nothing: a shift uses six bits anyway. The length has no more.
  bits <<= entry & 63;
  out += entry >> kCountAt;
}

HOLDFAST_INLINE void load_next(std::uint64_t& bits, const std::byte*& in) {
  const int used = std::countr_zero(bits);
  in -= used / 8;
  bits = (load_word(in) | 1) << used % 8;
}

HOLDFAST_INLINE void decode_safely(const DecodeEntry* entries, std::array<Stream, kStreams>& streams) {
  auto [a, b, c, d] = streams;
  for (;;) {
    std::size_t rounds = std::min(std::min(safe_rounds(a), safe_rounds(b)), std::min(safe_rounds(c), safe_rounds(d)));
    if (rounds == 0) break;
    for (; rounds > 0; --rounds) {
      load_next(a.bits, a.in);
      load_next(b.bits, b.in);
      load_next(c.bits, c.in);
      load_next(d.bits, d.in);
      for (unsigned step = 0; step < kStepsOfALoad; ++step) {
        decode_step(entries, a.bits, a.out);
        decode_step(entries, b.bits, b.out);
        decode_step(entries, c.bits, c.out);
        decode_step(entries, d.bits, d.out);
      }
    }
  }
  streams = {a, b, c, d};
}

#if defined(__x86_64__)
__attribute__((target("bmi,bmi2"))) void decode_by_bmi2(const DecodeEntry* entries,
                                                        std::array<Stream, kStreams>& streams) {
  decode_safely(entries, streams);
}
#endif

void decode_most(const DecodeEntry* entries, std::array<Stream, kStreams>& streams) {
#if defined(__x86_64__)
  static const bool has_bmi2 = __builtin_cpu_supports("bmi") != 0 && __builtin_cpu_supports("bmi2") != 0;
  if (has_bmi2) return decode_by_bmi2(entries, streams);
#endif
  decode_safely(entries, streams);
}

BackwardBits rest_of(const Stream& stream) {
  if (stream.bytes.size() < kWordBytes) return BackwardBits(stream.bytes);
  const auto before = static_cast<std::size_t>(stream.in - stream.bytes.data());
  return {stream.bytes, 8 * (before + kWordBytes) - static_cast<std::size_t>(std::countr_zero(stream.bits))};
}

// Decodes the last bytes of a stream. Returns whether the stream ends exactly with them.
bool finish_stream(const DecodeTable& table, const Stream& stream) {
  BackwardBits bits = rest_of(stream);
  for (std::byte* out = stream.out; out != stream.end;) {
    const DecodeEntry entry = table.entries()[bits.peek(kMaxCodeBits)];
    std::size_t count = entry >> kCountAt;
    std::size_t length = entry & 0xFF;
    if (length > bits.left() || count > static_cast<std::size_t>(stream.end - out)) {
      count = 1;
      length = table.lengths()[entry >> kBytesAt & 0xFF];
      if (length > bits.left()) return false;
    }
    for (std::size_t i = 0; i < count; ++i) *out++ = static_cast<std::byte>(entry >> (kBytesAt + 8 * i));
    bits.skip(length);
  }
  return bits.left() == 0;
}

// Puts one byte in front of an entry. `first` is an entry of one byte.
DecodeEntry prepend(DecodeEntry first, DecodeEntry entry) {
  return first + ((entry & kLeadingBytes) << 8) + (entry & kLengthAndCount);
}

}  // namespace

DecodeTable::DecodeTable() : levels_(std::size_t{2} << kMaxCodeBits) {}

void DecodeTable::fill(const CodeLengths& lengths) {
  lengths_ = lengths;
  // Sorts the bytes by their words: the longest first, and those of one length in the order of the bytes.
  std::array<std::size_t, kMaxCodeBits + 1> counts{};
  for (const std::uint8_t bits : lengths) ++counts[bits];
  unsigned shortest = 1;
  while (counts[shortest] == 0) ++shortest;
  std::array<std::size_t, kMaxCodeBits + 1> next{};
  for (unsigned bits = kMaxCodeBits; bits > 0; --bits) next[bits - 1] = next[bits] + counts[bits];
  const std::size_t count = next[0];
  std::array<std::uint8_t, 256> by_word{};
  for (std::size_t byte = 0; byte < lengths.size(); ++byte) {
    if (lengths[byte] > 0) by_word[next[lengths[byte]]++] = static_cast<std::uint8_t>(byte);
  }
  for (unsigned bits = 0; bits <= kMaxCodeBits; ++bits) fill_level(bits, shortest, std::span(by_word).first(count));
}

// Puts each word that fits in front of the entries for the bits that follow it.
void DecodeTable::fill_level(unsigned bits, unsigned shortest, std::span<const std::uint8_t> by_word) {
  DecodeEntry* const begin = levels_.data() + (std::size_t{1} << bits);
  // The lowest entries stay empty: their words are longer than `bits`.
  DecodeEntry* to = begin + (std::size_t{1} << bits);
  // With words of one bit, more bytes could follow than an entry has room for.
  const unsigned most_bits = shortest == 1 ? kMaxEntryBytes - 1 : kMaxCodeBits;
  for (std::size_t i = by_word.size(); i-- > 0 && lengths_[by_word[i]] <= bits;) {
    const unsigned length = lengths_[by_word[i]];
    const unsigned following = bits - length;
    const unsigned known = std::min(following, most_bits);
    const DecodeEntry first = DecodeEntry{1} << kCountAt | DecodeEntry{by_word[i]} << kBytesAt | length;
    const DecodeEntry* const next = level(known);
    to -= std::size_t{1} << following;
    if (known == following) {
      for (std::size_t rest = 0; rest < std::size_t{1} << following; ++rest) to[rest] = prepend(first, next[rest]);
    } else {
      for (std::size_t rest = 0; rest < std::size_t{1} << following; ++rest) {
        to[rest] = prepend(first, next[rest >> (following - known)]);
      }
    }
  }
  std::fill(begin, to, DecodeEntry{0});
}

bool decode_streams(std::span<const std::byte> bytes, const DecodeTable& table, std::span<std::byte> out) {
  if (bytes.size() < kJumpTableBytes) return false;
  const std::size_t part_bytes = (out.size() + kStreams - 1) / kStreams;
  std::span<const std::byte> rest = bytes.subspan(kJumpTableBytes);
  std::array<Stream, kStreams> streams;
  for (std::size_t s = 0; s < kStreams; ++s) {
    const std::size_t size = s + 1 == kStreams ? rest.size()
                                               : std::to_integer<std::size_t>(bytes[2 * s]) |
                                                     std::to_integer<std::size_t>(bytes[2 * s + 1]) << 8;
    if (size > rest.size()) return false;
    const std::span<std::byte> part = out.subspan(s * part_bytes, std::min(part_bytes, out.size() - s * part_bytes));
    if (!begin_stream(rest.first(size), part, streams[s])) return false;
    rest = rest.subspan(size);
  }
  decode_most(table.entries(), streams);
  return std::all_of(streams.begin(), streams.end(), [&](const Stream& s) { return finish_stream(table, s); });
}

}  // namespace holdfast::format
