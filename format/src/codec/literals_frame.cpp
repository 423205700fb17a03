// The exponents of weights form the only planes that can be compressed, and only by a Huffman code. So the encoder
// never looks for matches, samples a block before it counts all bytes, and codes two bytes at a time:
// 1.5 times as fast as ZSTD_compressSequences at the same ratio. See docs/decisions/compression.md.

#include "codec/literals_frame.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "codec/always_inline.h"
#include "codec/huffman_description.h"
#include "codec/literals_blocks.h"
#include "holdfast/base/error.h"

namespace holdfast::format {
namespace {

template <typename Integer>
void write_little_endian(Integer value, std::size_t bytes, std::byte* out) {
  for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(value >> 8 * i);
}

void write_block_header(BlockKind kind, std::size_t bytes, bool is_last, std::byte* out) {
  write_little_endian(static_cast<std::uint32_t>(is_last) | static_cast<std::uint32_t>(kind) << 1 | bytes << 3,
                      kBlockHeaderBytes, out);
}

bool is_repeated(std::span<const std::byte> block) {
  return std::memcmp(block.data(), block.data() + 1, block.size() - 1) == 0;
}

constexpr std::size_t kPlaceBytes = 64;

// Copies ranges of kPlaceBytes, spread evenly from the first byte of the block to the last.
template <std::size_t kPlaces>
std::array<std::byte, kPlaces * kPlaceBytes> take_sample(std::span<const std::byte> block) {
  std::array<std::byte, kPlaces * kPlaceBytes> sample;
  for (std::size_t i = 0; i < kPlaces; ++i) {
    const std::size_t first = (block.size() - kPlaceBytes) * i / (kPlaces - 1);
    std::copy_n(block.data() + first, kPlaceBytes, sample.data() + i * kPlaceBytes);
  }
  return sample;
}

// Decides from a sample, since counting all bytes takes longer than storing them. If all bytes occur equally
// often, two of them are equal once in 256 times. If a code gains 1/64 (an eighth of a bit per byte), that
// happens about 17 % more often. In a sample of this size, chance changes it by 1 %. The leading bits of the
// mantissas of weights add 6 %.
bool may_gain(std::span<const std::byte> block) {
  constexpr std::size_t kPlaces = 32;
  constexpr std::uint64_t kBytes = kPlaces * kPlaceBytes;
  if (block.size() <= kBytes) return true;
  std::uint64_t equal_pairs = 0;
  for (const std::uint64_t count : count_bytes(take_sample<kPlaces>(block))) equal_pairs += count * (count - 1);
  constexpr std::uint64_t kPairs = kBytes * (kBytes - 1);
  return equal_pairs * 256 > kPairs + kPairs / 6;
}

constexpr std::size_t kCountedPlaces = 256;
// In a smaller block, all bytes are counted.
constexpr std::size_t kMinSampledBytes = 4 * kCountedPlaces * kPlaceBytes;

// Counting takes as long as coding, and a sample gives nearly the same code. A sample misses rare bytes. Most
// of them are close to bytes that it has, such as the exponents of the smallest weights. So neighbours get a
// word too, and so do the upper bytes of 0 and -0. A block with yet other bytes is counted in full.
ByteCounts estimate_counts(std::span<const std::byte> block) {
  constexpr int kNeighbours = 3;
  constexpr std::uint32_t kWeight = 16;
  const ByteCounts sampled = count_bytes(take_sample<kCountedPlaces>(block));
  ByteCounts counts{};
  counts[0x00] = counts[0x80] = 1;
  for (int byte = 0; byte < 256; ++byte) {
    if (sampled[static_cast<std::size_t>(byte)] == 0) continue;
    for (int near = std::max(0, byte - kNeighbours); near <= std::min(255, byte + kNeighbours); ++near) {
      counts[static_cast<std::size_t>(near)] = std::max(1U, kWeight * sampled[static_cast<std::size_t>(near)]);
    }
  }
  return counts;
}

// A code slows readers down, so it must gain at least 1/64.
bool gains_enough(std::uint64_t coded, std::uint64_t plain) {
  return coded + plain / 64 < plain;
}

// The coded size of bytes with these counts, as a fraction of their size: in parts of kShares.
constexpr std::uint64_t kShares = 4096;
std::uint64_t coded_share(const ByteCounts& counts, const HuffmanCode& code) {
  std::uint64_t plain = 0;
  std::uint64_t coded = 0;
  for (std::size_t byte = 0; byte < counts.size(); ++byte) {
    plain += std::uint64_t{8} * counts[byte];
    coded += std::uint64_t{counts[byte]} * code.bits[byte];
  }
  return coded * kShares / plain;
}

// Code words in the form in which they are appended: the length in the lowest bits, then kIsThere, and the
// bits of the words from bit 8 on. 0 stands for a byte that has no word.
using Words = std::uint32_t;
constexpr Words kLengthBits = 0x3F;
constexpr Words kIsThere = 0x80;

Words join(Words first, Words second) {
  const Words lengths = (first & kLengthBits) + (second & kLengthBits);
  const Words bits = (first >> 8) | (second >> 8) << (first & kLengthBits);
  return bits << 8 | (first & second & kIsThere) | lengths;
}

std::array<Words, 256> words_of_bytes(const HuffmanCode& code) {
  std::array<Words, 256> words{};
  for (std::size_t byte = 0; byte < words.size(); ++byte) {
    if (code.bits[byte] > 0) words[byte] = Words{code.words[byte]} << 8 | kIsThere | code.bits[byte];
  }
  return words;
}

std::uint16_t load_pair(const std::byte* bytes) {
  std::uint16_t pair;
  std::memcpy(&pair, bytes, sizeof(pair));
  return pair;
}

struct PairLookUp {
  std::span<const Words> pairs;
  Words operator()(const std::byte* bytes) const { return pairs[load_pair(bytes)]; }
};

struct PairOfBytes {
  const std::array<Words, 256>& words;
  Words operator()(const std::byte* bytes) const {
    return join(words[std::to_integer<std::size_t>(bytes[1])], words[std::to_integer<std::size_t>(bytes[0])]);
  }
};

// Writes from the last byte to the first, because a stream is read from its end. Returns the size of the
// stream, or 0 if one of the bytes has no word.
template <typename WordsOfPair>
HOLDFAST_INLINE std::size_t write_words(std::span<const std::byte> bytes, const std::array<Words, 256>& words,
                                        const WordsOfPair& words_of_pair, std::byte* out) {
  std::byte* const begin = out;
  std::uint64_t bits = 0;
  // Its low 6 bits count the bits in use: up to 7 after a flush, and four words add up to 44. Its higher bits
  // contain remains of the words, which are cheaper to ignore than to mask away.
  std::uint64_t used = 0;
  std::uint64_t all = kIsThere;
  const auto append = [&](std::uint64_t next) {
    bits |= next >> 8 << (used & 63);
    used += next;
    all &= next;
  };
  const auto flush = [&] {
    std::memcpy(out, &bits, sizeof(bits));
    out += used >> 3 & 7;
    bits >>= used & 56;
    used &= 7;
  };
  std::size_t left = bytes.size();
  while (left % 4 != 0) append(words[std::to_integer<std::size_t>(bytes[--left])]);
  flush();
  for (; left > 0; left -= 4) {
    append(words_of_pair(bytes.data() + left - 2));
    append(words_of_pair(bytes.data() + left - 4));
    flush();
  }
  if (all == 0) return 0;
  append(Words{1} << 8 | 1);
  std::memcpy(out, &bits, sizeof(bits));
  return static_cast<std::size_t>(out - begin) + ((used & 63) + 7) / 8;
}

#if defined(__x86_64__)
// The same with the shifts of BMI2, with which it is a quarter faster.
template <typename WordsOfPair>
__attribute__((target("bmi2"))) std::size_t write_words_by_bmi2(std::span<const std::byte> bytes,
                                                                const std::array<Words, 256>& words,
                                                                const WordsOfPair& words_of_pair, std::byte* out) {
  return write_words(bytes, words, words_of_pair, out);
}
#endif

template <typename WordsOfPair>
std::size_t write_stream(std::span<const std::byte> bytes, const std::array<Words, 256>& words,
                         const WordsOfPair& words_of_pair, std::byte* out) {
#if defined(__x86_64__)
  static const bool has_bmi2 = __builtin_cpu_supports("bmi2") != 0;
  if (has_bmi2) return write_words_by_bmi2(bytes, words, words_of_pair, out);
#endif
  return write_words(bytes, words, words_of_pair, out);
}

// Includes room for the whole word with which the last bits of a stream are written.
std::size_t max_stream_bytes(std::size_t block_bytes) {
  return (block_bytes + kStreams - 1) / kStreams * kMaxCodeBits / 8 + 16;
}

}  // namespace

void PairTable::fill(const std::array<std::uint32_t, 256>& words) {
  for (const std::size_t second : bytes_) {
    for (const std::size_t first : bytes_) pairs_[second << 8 | first] = 0;
  }
  bytes_.clear();
  for (std::size_t byte = 0; byte < words.size(); ++byte) {
    if (words[byte] != 0) bytes_.push_back(byte);
  }
  for (const std::size_t second : bytes_) {
    for (const std::size_t first : bytes_) pairs_[second << 8 | first] = join(words[second], words[first]);
  }
}

std::span<const std::byte> LiteralsEncoder::encode(std::span<const std::byte> content, std::size_t plane_bytes) {
  HOLDFAST_ASSERT(!content.empty() && content.size() >> 32 == 0 && content.size() % plane_bytes == 0);
  const std::size_t blocks_per_plane = (plane_bytes + kMaxBlockBytes - 1) / kMaxBlockBytes;
  const std::size_t blocks = content.size() / plane_bytes * blocks_per_plane;
  // A coded block may turn out larger than its content. It is then stored as it is, over the coded bytes.
  const std::size_t largest_coded = kLiteralsHeaderBytes + kMaxDescriptionBytes + kJumpTableBytes +
                                    kStreams * (max_stream_bytes(kMaxBlockBytes) + 1) + 1;
  frame_.resize(kFrameHeaderBytes + content.size() + blocks * kBlockHeaderBytes + largest_coded + kChecksumBytes);

  std::byte* out = frame_.data();
  write_little_endian(kFrameBegin, 5, out);
  write_little_endian(content.size(), 4, out + 5);
  out += kFrameHeaderBytes;
  for (std::size_t plane = 0; plane < content.size(); plane += plane_bytes) {
    for (std::size_t first = 0; first < plane_bytes; first += kMaxBlockBytes) {
      const std::size_t bytes = std::min(kMaxBlockBytes, plane_bytes - first);
      out = write_block(content.subspan(plane + first, bytes), plane + first + bytes == content.size(), out);
    }
  }
  write_little_endian(XXH64(content.data(), content.size(), 0), kChecksumBytes, out);
  return {frame_.data(), out + kChecksumBytes};
}

// Returns the end of what it wrote.
std::byte* LiteralsEncoder::write_block(std::span<const std::byte> block, bool is_last, std::byte* out) {
  std::byte* const content = out + kBlockHeaderBytes;
  if (is_repeated(block)) {
    write_block_header(BlockKind::repeated, block.size(), is_last, out);
    *content = block.front();
    return content + 1;
  }
  const std::size_t coded = block.size() >= kMinCodedBytes && may_gain(block) ? write_literals(block, content) : 0;
  if (coded > 0) {
    write_block_header(BlockKind::coded, coded, is_last, out);
    return content + coded;
  }
  write_block_header(BlockKind::raw, block.size(), is_last, out);
  std::memcpy(content, block.data(), block.size());
  return content + block.size();
}

// Returns the size, or 0 if a code does not gain enough.
std::size_t LiteralsEncoder::write_literals(std::span<const std::byte> block, std::byte* out) {
  std::size_t size = 0;
  if (block.size() >= kMinSampledBytes) {
    const ByteCounts counts = estimate_counts(block);
    const HuffmanCode code = huffman_code(counts);
    if (!gains_enough(coded_share(counts, code), kShares)) return 0;
    size = write_coded(block, code, out);
  }
  if (size == 0) size = write_coded(block, huffman_code(count_bytes(block)), out);
  return gains_enough(size, block.size()) ? size : 0;
}

// Returns the size, or 0 if the code lacks a byte or cannot be described.
std::size_t LiteralsEncoder::write_coded(std::span<const std::byte> block, const HuffmanCode& code, std::byte* out) {
  std::size_t size = kLiteralsHeaderBytes;
  const std::size_t description = describe_code(code, out + size);
  if (description == 0) return 0;
  size += description;
  const std::size_t streams = write_streams(block, code, out + size);
  if (streams == 0) return 0;
  size += streams;
  write_little_endian(literals_header(block.size(), size - kLiteralsHeaderBytes), kLiteralsHeaderBytes, out);
  out[size++] = std::byte{0};  // no sequences
  return size;
}

// Writes the sizes of the first three streams and then four streams, which decoders read in parallel. Returns
// the size, or 0 if the code lacks a byte.
std::size_t LiteralsEncoder::write_streams(std::span<const std::byte> block, const HuffmanCode& code, std::byte* out) {
  const std::array<Words, 256> words = words_of_bytes(code);
  const auto present = words.size() - static_cast<std::size_t>(std::count(words.begin(), words.end(), 0U));
  const bool has_pairs = present * present <= block.size() / 8;
  if (has_pairs) pairs_.fill(words);

  const std::size_t part_bytes = (block.size() + kStreams - 1) / kStreams;
  stream_.resize(max_stream_bytes(block.size()));
  std::size_t size = kJumpTableBytes;
  for (std::size_t s = 0; s < kStreams; ++s) {
    const auto part = block.subspan(s * part_bytes, std::min(part_bytes, block.size() - s * part_bytes));
    const std::size_t bytes = has_pairs ? write_stream(part, words, PairLookUp{pairs_.words()}, stream_.data())
                                        : write_stream(part, words, PairOfBytes{words}, stream_.data());
    if (bytes == 0) return 0;
    std::memcpy(out + size, stream_.data(), bytes);
    size += bytes;
    if (s + 1 < kStreams) write_little_endian(bytes, 2, out + 2 * s);
  }
  return size;
}

}  // namespace holdfast::format
